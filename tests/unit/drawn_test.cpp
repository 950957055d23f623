// The suite `drawn` is a function of its seed, and its cases stand in no other suite.
#include "harness/cases/drawn.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "harness/cases/coverage.h"
#include "reference/options/case_line.h"

namespace attest {
namespace {

std::set<std::string> lines_of(std::uint64_t seed) {
  std::set<std::string> lines;
  for (const Problem& p : drawn_problems(seed)) {
    const std::string line = print_case(p);
    EXPECT_EQ(parse_case(line), p) << line;
    EXPECT_TRUE(lines.insert(line).second) << line;
  }
  return lines;
}

TEST(Drawn, IsAFunctionOfTheSeed) {
  const std::set<std::string> lines = lines_of(20261125), again = lines_of(20261125), other = lines_of(20261126);
  EXPECT_EQ(lines.size(), 2000u);
  EXPECT_EQ(lines, again);
  std::size_t both = 0;
  for (const std::string& line : other) both += lines.contains(line);
  EXPECT_LT(both, 100u);
}

/// Open classes are met far from where they begin, and numbers that stand in no list.
TEST(Drawn, NumbersLieAnywhere) {
  std::set<double> scales, softcaps;
  std::int64_t largest_window = 0;
  for (const std::uint64_t seed : {3, 4, 5, 6, 7, 8}) {
    for (const Problem& problem : drawn_problems(seed)) {
      const Call& p = problem.call;
      if (p.scale) scales.insert(*p.scale);
      if (p.softcap) softcaps.insert(*p.softcap);
      if (p.window_left != Call::kUnbounded) largest_window = std::max(largest_window, p.window_left);
    }
  }
  EXPECT_GE(scales.size(), 15u);
  EXPECT_GE(softcaps.size(), 15u);
  EXPECT_GT(largest_window, 2000);
}

TEST(Drawn, MeetsMostClassesOfTheTable) {
  Coverage met;
  for (const Problem& p : drawn_problems(1)) met.meet(p);
  std::size_t classes = 0;
  for (std::size_t c = 0; c < classes_of_table().size(); ++c) classes += met.met(c);
  EXPECT_GE(classes * 10, classes_of_table().size() * 9);
}

}  // namespace
}  // namespace attest
