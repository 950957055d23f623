// One matrix of a trace, printed and written as JSON alike.
#include "harness/trace/stage.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "reference/base/types.h"

namespace attest {
namespace {

std::string printed(const Stage& stage, int digits) {
  testing::internal::CaptureStdout();
  print_stage(stage, digits);
  std::fflush(stdout);
  return testing::internal::GetCapturedStdout();
}

TEST(Stage, IsPrintedWithNamesAndSums) {
  Stage stage{"scores", "Scores", {"query 0", "query 1"}, {"a", "b"}, {{1, -2.5}, {0.125, 1e7}}};
  stage.row_sums = stage.column_sums = true;
  EXPECT_EQ(printed(stage, 2),
            "\nScores  [2 x 2]\n"
            "                    a           b         sum\n"
            "  query 0        1.00       -2.50       -1.50\n"
            "  query 1        0.12    1.00e+07    1.00e+07\n"
            "  sum            1.12  9999997.50\n");
}

TEST(Stage, WhatIsNoNumberHasAName) {
  const Stage stage{"s", "S", {"r"}, {}, {{kNaN, kInfinity, -kInfinity, -0.0}}};
  EXPECT_EQ(printed(stage, 1), "\nS  [1 x 4]\n  r      nan      inf     -inf      0.0\n");
  EXPECT_EQ(stage_json(stage)["values"].dump(), R"([["nan","inf","-inf",-0.0]])");
}

TEST(Stage, ListsOfPositionsAreWholeAndOfAnyLength) {
  Stage stage{"seen_keys", "Seen", {"a", "b"}, {}, {{0}, {0, 1, 2}}};
  stage.whole = true;
  EXPECT_NE(printed(stage, 4).find("[2 lists]"), std::string::npos);
  EXPECT_EQ(stage_json(stage)["values"].dump(), "[[0],[0,1,2]]");
}

TEST(Stage, WhatIsTooLargeToPrintIsInTheJson) {
  Stage stage{
      "large", "Large", numbered("row", 40), {}, std::vector<std::vector<double>>(40, std::vector<double>(20, 1))};
  const std::string text = printed(stage, 1);
  EXPECT_NE(text.find("  row 31  "), std::string::npos);
  EXPECT_EQ(text.find("  row 32  "), std::string::npos);
  EXPECT_TRUE(text.ends_with("  ...   \n") || text.ends_with("  ...\n") || text.find("\n  ...") != std::string::npos)
      << text;
  EXPECT_EQ(stage_json(stage)["values"].size(), 40u);
  EXPECT_EQ(stage_json(stage)["values"][0].size(), 20u);
}

TEST(Stage, RowsAreNumbered) { EXPECT_EQ(numbered("row", 2), (std::vector<std::string>{"row 0", "row 1"})); }

}  // namespace
}  // namespace attest
