// Prints case lines that meet what other suites leave unmet, a function of the seed alone.
//
//   cover singles SEED [SUITE ...]    every class, and every option beside every class of lengths
//   cover pairs SEED [SUITE ...]      every class, every pair of classes of different features, and every storage type
//                                     beside every visibility and class of lengths
//
// Suites that are named count as met before. What can't be met is left out (harness/cases/impossible_pairs.cpp); what
// was tried in vain is said on standard error, and then the exit code is 1.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "harness/cases/class_cases.h"
#include "harness/cases/random_case.h"
#include "harness/cases/suites.h"
#include "reference/options/case_line.h"

namespace attest {
namespace {

constexpr int kSteps = 120;

class Writer {
 public:
  Writer(std::uint64_t seed, Coverage met) : random_(seed), met_(std::move(met)) {}

  /// False when no case was found.
  bool meet(std::vector<std::size_t> classes, const Option* option = nullptr) {
    for (int tries = 0; tries < (option ? 60 : 1); ++tries) {
      std::vector<std::size_t> wanted = classes;
      if (option) wanted.push_back(class_of(*option));
      const std::optional<Problem> made = covering_case(wanted, met_, kSuiteLimits, kSteps, random_);
      if (!made || (option && !option->is_set(*made))) continue;
      met_.meet(*made);
      cost_ += random_case_cost(*made);
      std::printf("%s\n", print_case(*made).c_str());
      return true;
    }
    return false;
  }

  const Coverage& met() const { return met_; }
  double cost() const { return cost_; }
  Random& random() { return random_; }

 private:
  /// One of the option's classes.
  std::size_t class_of(const Option& option) {
    std::vector<std::size_t> of_option;
    for (std::size_t n = 0; n < classes_of_table().size(); ++n) {
      if (classes_of_table()[n].option == &option) of_option.push_back(n);
    }
    return random_.pick(of_option);
  }

  Random random_;
  Coverage met_;
  double cost_ = 0;
};

int run(const std::string& mode, std::uint64_t seed, const std::vector<std::string>& suites) {
  Coverage before;
  for (const std::string& suite : suites) {
    for (const Case& one : load_suite(find_suite(suite))) before.meet(one.problem);
  }
  const std::size_t had = before.cases();
  Writer writer(seed, std::move(before));
  const auto& table = classes_of_table();
  std::map<std::string, int> failed;
  const auto fail = [&](const std::string& a, const std::string& b) { ++failed[a + " | " + b]; };
  for (std::size_t n = 0; n < table.size(); ++n) {
    if (!writer.met().met(n) && !why_impossible(n, n) && !writer.meet({n})) fail(table[n].name(), "alone");
  }
  if (mode == "singles") {
    for (std::size_t o = 0; o < options().size(); ++o) {
      for (std::size_t c : length_classes()) {
        if (writer.met().option_met(o, c) || why_impossible_option(options()[o], c)) continue;
        if (!writer.meet({c}, &options()[o])) fail(options()[o].key, table[c].name());
      }
    }
  } else {
    std::vector<ClassPair> pairs = all_pairs();
    for (std::size_t n = pairs.size(); n > 1; --n) std::swap(pairs[n - 1], pairs[writer.random().below(n)]);
    for (const auto& [a, b] : pairs) {
      if (writer.met().met(a, b) || why_impossible(a, b)) continue;
      if (!writer.meet({a, b})) fail(table[a].name(), table[b].name());
    }
    for (const Triple& t : all_triples()) {
      if (writer.met().met(t) || why_impossible(t)) continue;
      const Visibility& visibility = visibilities()[t.visibility];
      bool met = false;
      for (int tries = 0; tries < 60 && !met; ++tries) {
        met = writer.meet({t.type, writer.random().pick(visibility.classes), t.length}) && writer.met().met(t);
      }
      if (!met) fail(table[t.type].name() + " | " + visibility.name, table[t.length].name());
    }
  }
  std::fprintf(stderr, "%zu cases, %.3g multiply-adds\n", writer.met().cases() - had, writer.cost());
  for (const auto& [what, count] : failed) std::fprintf(stderr, "not met: %s\n", what.c_str());
  return failed.empty() ? 0 : 1;
}

}  // namespace
}  // namespace attest

int main(int argc, char** argv) {
  const std::string mode = argc > 2 ? argv[1] : "";
  if (mode != "singles" && mode != "pairs") {
    std::fprintf(stderr, "usage: cover singles|pairs SEED [SUITE ...]\n");
    return 2;
  }
  return attest::run(mode, std::strtoull(argv[2], nullptr, 10), {argv + 3, argv + argc});
}
