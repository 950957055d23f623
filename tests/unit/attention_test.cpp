// What attention means: which keys a row sees, and what it makes of them.
#include "reference/softmax/attention.h"

#include <cmath>
#include <numeric>

#include "tests/unit/helpers.h"

namespace attest {
namespace {

std::int64_t visible_count(const std::string& line, std::size_t row) { return Computed(line).row(row).visible_count; }

TEST(Visibility, CausalCornersAndWindows) {
  EXPECT_EQ(visible_count("seq=4 dim=2 causal", 0), 1);
  EXPECT_EQ(visible_count("seq=4 dim=2 causal", 3), 4);
  EXPECT_EQ(visible_count("seq=2x5 dim=2 causal align=top-left", 0), 1);
  EXPECT_EQ(visible_count("seq=2x5 dim=2 causal align=bottom-right", 0), 4);
  EXPECT_EQ(visible_count("seq=5x2 dim=2 causal align=bottom-right", 2), 0);
  EXPECT_EQ(visible_count("seq=5x2 dim=2 causal align=bottom-right", 4), 2);
  EXPECT_EQ(visible_count("seq=9 dim=2 window=2:1", 4), 4);  // left = W shows W + 1 keys
  EXPECT_EQ(visible_count("seq=9 dim=2 window=0:0", 4), 1);
  EXPECT_EQ(visible_count("seq=9 dim=2 window=2:inf causal", 8), 3);
  EXPECT_EQ(visible_count("seq=33x1 dim=2 align=bottom-right window=1:7", 0), 0);
}

TEST(Visibility, SegmentsHaveDiagonalsOfTheirOwn) {
  const Problem p = parse_case("seq=8x8 dim=2 causal align=top-left segments=q:3,5/k:2,6");
  EXPECT_TRUE(locate(p, 0, 0, 1).same_segment);
  EXPECT_FALSE(locate(p, 0, 0, 2).same_segment);
  const Placement second = locate(p, 0, 4, 3);  // query 1 and key 1 of the second
  EXPECT_TRUE(second.same_segment);
  EXPECT_EQ(second.diagonal, 1);
  EXPECT_EQ(second.key, 1);
}

TEST(Attention, EmptyRowsAreZeroWithLseMinusInfinity) {
  const Computed c("seq=3x0 dim=2");
  EXPECT_EQ(c.row(0).output, (std::vector<double>{0, 0}));
  EXPECT_EQ(c.row(0).lse, -kInfinity);
  const Computed masked("seq=2 dim=2 mask=bool:BHQK:none");
  EXPECT_EQ(masked.row(1).output, (std::vector<double>{0, 0}));
}

TEST(Attention, UniformScoresGiveExactlyTheMean) {
  const Computed c("seq=3x8 dim=4 q.fill=constant(0) v.fill=integer");
  for (std::size_t column = 0; column < 4; ++column) {
    double sum = 0;
    for (std::int64_t j = 0; j < 8; ++j)
      sum += c.inputs.at(TensorId::v).view().as<const float>()(0, 0, j, static_cast<std::int64_t>(column));
    EXPECT_EQ(c.row(0).output[column], sum / 8);
  }
  EXPECT_EQ(c.row(0).lse, std::log(8.0));
}

TEST(Attention, HiddenPoisonChangesNothingAndVisiblePoisonReachesItsRows) {
  const Computed clean("seq=6 dim=4 causal mask=bool:111K:random(0.5) seed=3");
  const Computed poisoned("seq=6 dim=4 causal mask=bool:111K:random(0.5) poison=hidden:kv seed=3");
  for (std::size_t r = 0; r < 6; ++r) EXPECT_EQ(clean.row(r).output, poisoned.row(r).output);
  const Computed visible("seq=6 dim=4 causal poison=visible:k seed=3");
  EXPECT_TRUE(std::isnan(visible.row(5).output[0]));  // the last row sees every key
}

TEST(Attention, WeightsAreANumberFromMinusAMillionUp) {
  const Computed c("seq=8 dim=4 mask=add:BHQK:finitemin(1)");
  EXPECT_EQ(c.row(0).visible_count, 8);
  EXPECT_NEAR(std::accumulate(c.row(0).weights.begin(), c.row(0).weights.end(), 0.0), 1, 1e-15);
}

}  // namespace
}  // namespace attest
