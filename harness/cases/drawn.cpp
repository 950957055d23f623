#include "harness/cases/drawn.h"

#include <algorithm>
#include <set>
#include <string>

#include "harness/cases/class_cases.h"
#include "harness/cases/coverage.h"
#include "reference/options/case_line.h"

namespace attest {
namespace {

constexpr std::size_t kCases = 2000;
constexpr int kTries = 12;  ///< for one set of classes: the next set is as good

/// Classes of two to five options that can stand together.
std::vector<std::size_t> classes_together(Random& random) {
  const auto& table = classes_of_table();
  std::vector<const Option*> varied;
  for (const Option& option : options()) {
    if (option.varies()) varied.push_back(&option);
  }
  std::vector<std::size_t> chosen;
  const std::size_t wanted = 2 + random.below(4);
  for (int tries = 0; chosen.size() < wanted && tries < 60; ++tries) {
    const Option& option = *random.pick(varied);
    const Feature& feature = random.pick(option.features);
    const auto of_feature = classes_of_feature(feature.name);
    const std::size_t one = random.pick(of_feature);
    const bool fits = std::none_of(chosen.begin(), chosen.end(), [&](std::size_t other) {
      return table[other].option == &option || why_impossible(one, other) != nullptr;
    });
    if (fits) chosen.push_back(one);
  }
  return chosen;
}

}  // namespace

std::vector<Problem> drawn_problems(std::uint64_t seed) {
  Random random(seed);
  std::vector<Problem> problems;
  std::set<std::string> seen;
  while (problems.size() < kCases) {
    const std::vector<std::size_t> classes = classes_together(random);
    std::optional<Problem> made = case_in(classes, CaseLimits{}, random, kTries);
    if (made && seen.insert(print_case(*made)).second) problems.push_back(std::move(*made));
  }
  return problems;
}

}  // namespace attest
