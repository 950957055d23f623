// What the committed suites promise about themselves.
#include "harness/cases/suites.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>

#include "harness/cases/coverage.h"
#include "reference/operators/operator.h"
#include "tests/unit/complaint.h"
#include "tests/unit/helpers.h"

namespace attest {
namespace {

std::vector<Problem> lines_of(const std::string& suite) {
  std::vector<Problem> problems;
  for (const Case& one : load_suite(find_suite(suite))) problems.push_back(one.problem);
  return problems;
}

/// Where a mask lies and of which type it is are met with every fill.
TEST(Masks, EveryFillMeetsEveryTypeStrideAndOffset) {
  std::map<std::string, std::set<std::string>> met;  // by fill
  for (const Problem& problem : lines_of("masks")) {
    const Call& p = problem.call;
    if (!p.mask) continue;
    auto& of_fill = met[(p.mask->additive ? "add " : "bool ") + problem.data.mask_fill.name];
    if (p.tensor(TensorId::mask).strides) of_fill.insert("strides");
    if (p.tensor(TensorId::mask).offset > 0) of_fill.insert("offset");
    if (p.mask->additive) of_fill.insert(std::string(name_of(type_of(p, TensorId::mask))));
    if (p.key_length > 64) of_fill.insert("keys beyond a tile");
  }
  for (const FillName& fill : boolean_mask_fills())
    EXPECT_EQ(met["bool " + std::string(fill.name)].size(), 3u) << fill.name;
  for (const FillName& fill : additive_mask_fills())
    EXPECT_EQ(met["add " + std::string(fill.name)].size(), 7u) << fill.name;
}

TEST(Matrix, IsLargeAndItsMedianLineIsCheap) {
  std::vector<double> costs;
  for (const Problem& p : lines_of("matrix")) costs.push_back(dense_multiply_adds(p));
  EXPECT_GE(costs.size(), 3000u);
  std::nth_element(costs.begin(), costs.begin() + static_cast<std::ptrdiff_t>(costs.size() / 2), costs.end());
  EXPECT_LE(costs[costs.size() / 2], 2e6);
}

/// Causal, lengths, window, mask and Lq != Lk: every choice of three meets in each of its eight combinations.
TEST(Matrix, VisibilityIsCrossedThreeWays) {
  std::set<std::array<int, 4>> met;
  for (const Problem& problem : lines_of("matrix")) {
    const Call& p = problem.call;
    const bool window = p.window_left != Call::kUnbounded || p.window_right != Call::kUnbounded;
    const std::array<bool, 5> has = {p.causal, p.lengths.has_value(), window, p.mask.has_value(),
                                     p.query_length != p.key_length};
    for (int a = 0; a < 5; ++a) {
      for (int b = a + 1; b < 5; ++b) {
        for (int c = b + 1; c < 5; ++c) met.insert({a, b, c, has[a] + 2 * has[b] + 4 * has[c]});
      }
    }
  }
  EXPECT_EQ(met.size(), 10u * 8u);
}

/// KernelBench and cudnn-frontend tested squares only: here every feature and type also meets Lq != Lk.
TEST(Matrix, EveryOptionMeetsUnequalLengths) {
  std::set<std::string> met, all;
  for (const Problem& problem : lines_of("matrix")) {
    const Call& p = problem.call;
    if (!p.has_scores()) continue;  // linear attention has one length
    std::set<std::string> names = {std::string(name_of(p.dtype))};
    for (const std::size_t c : classes_of(problem)) names.insert(classes_of_table()[c].feature->name);
    all.insert(names.begin(), names.end());
    if (p.query_length != p.key_length) met.insert(names.begin(), names.end());
  }
  EXPECT_EQ(met, all);
  EXPECT_GT(met.size(), 60u);
}

TEST(Onnx, EveryImportedNodeTestIsThere) {
  const std::vector<Problem> problems = lines_of("onnx");
  EXPECT_EQ(problems.size(), 93u + 11u + 14u);
}

/// What speeds are weighed by: every line's comment begins with its weight.
TEST(Shapes, EveryLineHasAWeight) {
  std::ifstream file(find_suite("shapes").path);
  std::size_t weighed = 0;
  for (std::string line; std::getline(file, line);) {
    const std::size_t comment = line.find('#');
    if (comment == 0 || line.empty()) continue;
    ASSERT_NE(comment, std::string::npos) << line;
    EXPECT_GE(std::atoi(line.c_str() + comment + 1), 1) << line;
    ++weighed;
  }
  EXPECT_GE(weighed, 30u);
  EXPECT_EQ(weighed, lines_of("shapes").size());
}

TEST(Suites, EveryCommittedLineIsCanonicalAndUnique) {
  for (const Suite& suite : find_suites()) EXPECT_GT(load_suite(suite).size(), 0u) << suite.name;
}

TEST(Suites, UnknownNamesSuggestTheNearest) {
  EXPECT_NE(complaint([] { find_suite("smoek"); }).find("smoke"), std::string::npos);
}

}  // namespace
}  // namespace attest
