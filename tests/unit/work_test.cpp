// How much there is to do.
#include "reference/operators/work.h"

#include "tests/unit/helpers.h"

namespace attest {
namespace {

TEST(VisiblePairs, AgreeWithTheDefinition) {
  for (const char* line : {"heads=2 seq=9x13 dim=2 causal align=bottom-right",
                           "seq=13x9 dim=2 causal align=bottom-right", "seq=33x1 dim=8 align=bottom-right window=1:7",
                           "seq=20 dim=2 window=3:2", "seq=9 dim=2 mask=bool:11QK:random(0.5)"}) {
    const Computed c(line);
    double pairs = 0;
    for (const Row& row : c.attention.rows) pairs += static_cast<double>(row.visible_count);
    EXPECT_EQ(count_visible_pairs(c.problem, c.inputs.views()), pairs) << line;
  }
}

TEST(Work, OfDensePairsIsCountedWhole) {
  EXPECT_EQ(dense_multiply_adds(parse_case("batch=2 heads=4/2 seq=3x5 dim=6/7")), 2.0 * 4 * 3 * 5 * (6 + 7));
}

/// A benchmark counts what was asked for: pairs that nobody sees are none of it.
TEST(Work, ThatIsUsefulIsThatOfVisiblePairs) {
  const Computed whole("heads=2 seq=8 dim=16"), causal("heads=2 seq=8 dim=16 causal");
  const double all = useful_operations(whole.problem, whole.inputs.views());
  EXPECT_EQ(all, 2 * dense_multiply_adds(whole.problem));  // a multiplication and an addition
  EXPECT_EQ(useful_operations(causal.problem, causal.inputs.views()), all * 36 / 64);
}

TEST(Work, OfARowGrowsWithItsKeys) {
  EXPECT_GT(row_operations(parse_case("seq=1x200 dim=8")), 1.9 * row_operations(parse_case("seq=1x100 dim=8")));
  EXPECT_GT(row_operations(parse_case("op=delta seq=4 dim=8")), 0);
}

}  // namespace
}  // namespace attest
