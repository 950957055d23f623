// One element against its expectation: class first, then the bound.
#include "harness/comparison/compare.h"

#include <gtest/gtest.h>

namespace attest {
namespace {

Comparison compare_one(double got, double expected, double bound) {
  Comparison c;
  c.element("o", {0, 0, 0, 0}, got, expected, bound);
  return c;
}

TEST(Compare, ClassComesBeforeTheBound) {
  EXPECT_FALSE(compare_one(1, 1, 0).failed());
  EXPECT_TRUE(compare_one(1.1, 1, 0.05).failed());
  EXPECT_TRUE(compare_one(kNaN, 1, 1e9).failed());
  EXPECT_TRUE(compare_one(kInfinity, 1, 1e9).failed());
  EXPECT_FALSE(compare_one(kNaN, kNaN, 0).failed());
  EXPECT_FALSE(compare_one(-kInfinity, kNaN, 0).failed());
  EXPECT_TRUE(compare_one(1, kNaN, 1e9).failed());  // cubecl PR#1070
  EXPECT_FALSE(compare_one(-kInfinity, -kInfinity, 0).failed());
  EXPECT_TRUE(compare_one(kInfinity, -kInfinity, 1e9).failed());
  EXPECT_TRUE(compare_one(1, 1.5, kNaN).failed());
  EXPECT_TRUE(compare_one(0, 0.5, 0).failed());
}

TEST(Compare, BoundsThatProveNothingAreInconclusive) {
  EXPECT_TRUE(compare_one(0.1, 0.5, 0.6).inconclusive());
  EXPECT_TRUE(compare_one(7, 0.5, kInfinity).inconclusive());
  EXPECT_FALSE(compare_one(0.5, 0.5, 0.1).inconclusive());
  EXPECT_FALSE(compare_one(0, 0, 0).inconclusive());
}

TEST(Compare, AResultThatKeysNumberNamesItsKey) {
  Comparison comparison;
  comparison.element("present_k", {0, 1, 5, 2}, 1, 2, 0.5);
  EXPECT_NE(comparison.describe().find("present_k[0,1,key 5,2] = 1"), std::string::npos) << comparison.describe();
  EXPECT_EQ(place_text("lse", {0, 1, 5, 0}), "lse[0,1,5,0]");
  EXPECT_EQ(place_text("a stage", {0, 1, 5, 0}), "a stage[0,1,5,0]");
  EXPECT_EQ(row_word("o"), "query");
  EXPECT_EQ(row_word("present_v"), "key");
  EXPECT_EQ(row_word("present_state"), "row");
}

}  // namespace
}  // namespace attest
