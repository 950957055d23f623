// What a case costs, as far as its call tells.
#include "harness/cases/case_cost.h"

#include <gtest/gtest.h>

#include "reference/options/case_line.h"

namespace attest {
namespace {

double cost(const char* line) { return cost_of(parse_case(line)); }

TEST(CaseCost, MoreWorkCostsMore) {
  const double small = cost("seq=16 dim=8");
  EXPECT_GT(small, 0);
  for (const char* more : {"batch=2 seq=16 dim=8", "heads=2/1 seq=16 dim=8", "seq=17x16 dim=8 causal align=top-left",
                           "seq=16x17 dim=8", "seq=16 dim=9/8", "seq=16 dim=8/9", "seq=16 dim=8 softcap=30",
                           "seq=16 dim=8 out=o,weights", "op=linear seq=4096 dim=64"}) {
    EXPECT_GT(cost(more), small) << more;
  }
  EXPECT_GT(cost("seq=16 dim=8 out=o,weights,raw"), cost("seq=16 dim=8 out=o,weights"));
}

TEST(CaseCost, IsThatOfASampleWhereOnlyASampleIsCompared) {
  const double multiply_adds = 8.0 * 8192 * 8192 * 128;
  EXPECT_LT(cost("heads=8 seq=8192 dim=64"), multiply_adds / 500) << "the pairs that nobody compares cost less";
  EXPECT_GT(cost("heads=8 seq=8192 dim=64"), multiply_adds / 1000);
}

/// The numbers themselves: parts that were made by another cost would not fit together.
TEST(CaseCost, IsTheSameNumberEverywhere) {
  EXPECT_EQ(cost("seq=0 dim=1"), 100 + 2);
  EXPECT_EQ(cost("seq=1 dim=1"), 100 + 0.001 * 2 + 0.04 + 0.024 * 4 + 2 + 0.5 + 0.066);
}

/// Batches of many short sequences, which take longer than their multiply-adds say.
TEST(CaseCost, KnowsManyHeads) { EXPECT_GT(cost("batch=65540 heads=68/1 seq=1 dim=1"), 100 * cost("seq=256 dim=64")); }

}  // namespace
}  // namespace attest
