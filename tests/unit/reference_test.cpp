#include <cmath>
#include <numeric>
#include <utility>

#include "harness/comparison/expectation.h"
#include "reference/error_bound.h"
#include "reference/projection.h"
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
      sum += c.inputs.v.view().as<const float>()(0, 0, j, static_cast<std::int64_t>(column));
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

TEST(Projection, MultipliesAndRefusesWhatDoesNotFit) {
  const Matrix x{1, 2, {3, 4}}, w{2, 2, {1, 2, 3, 4}};
  EXPECT_EQ(project(x, w).values, (std::vector<double>{15, 22}));
  EXPECT_THROW(project(w, x), std::invalid_argument);
}

Arithmetic plain_f32() {
  Arithmetic a;
  a.exp_ulps = a.log_ulps = 1;
  return a;
}

double bound_of(const std::string& line, const Arithmetic& a) {
  const Computed c(line);
  const Inputs views = c.inputs.views();
  const Head head(c.problem, views, 0, 0);
  Row row;
  head.attend(0, row);
  RowBound bound;
  bound_row(head, row, 0, a, DType::f32, bound);
  return bound.output[0];
}

TEST(ErrorBound, GrowsWithWhatAnArithmeticAdmits) {
  const std::string line = "seq=64 dim=64";
  const double plain = bound_of(line, plain_f32());
  EXPECT_GT(plain, 0);
  EXPECT_LT(plain, 1e-4);
  Arithmetic worse = plain_f32();
  worse.exp_ulps = 100;
  EXPECT_GT(bound_of(line, worse), plain);
  worse = plain_f32();
  worse.key_block = 8;
  EXPECT_GT(bound_of(line, worse), plain);
  worse = plain_f32();
  worse.stored_weights = DType::bf16;
  EXPECT_GT(bound_of(line, worse), 100 * plain);
  Arithmetic better = plain_f32();
  better.accumulator = better.stored_weights = DType::f64;
  EXPECT_LT(bound_of(line, better), plain);
}

TEST(ErrorBound, ConstantValuesHaveNoErrorFromTheWeights) {
  // Outputs are convex combinations: with one value for all keys only rounding of the sum is left.
  EXPECT_LT(bound_of("seq=8x64 dim=64 v.fill=constant(1) fill=spread(300)", plain_f32()), 3e-5);
}

TEST(ErrorBound, EmptyRowsAreExactAndOverflowProvesNothing) {
  EXPECT_EQ(bound_of("seq=2x0 dim=4", plain_f32()), 0);
  EXPECT_EQ(bound_of("seq=4 dim=4 scale=1e30 fill=huge", plain_f32()), kInfinity);
}

TEST(Bounds, AreNumbersAtTheEndOfTheRange) {
  // A mask of doubles whose lowest number is added to scores in float32.
  const Problem p = parse_case("seq=2 dim=1 mask=add:1111:finitemin(1) mask.dtype=f64 out=o,lse");
  const CaseInputs inputs = make_inputs(p);
  const Expectation e = expect(p, inputs.views(), {{plain_f32(), p.dtype}}, 1);
  for (const Bounds* bounds : {&std::as_const(e.own), &e.bounds[0]}) {
    for (double bound : bounds->lse) EXPECT_FALSE(std::isnan(bound));
    for (double bound : bounds->out) EXPECT_FALSE(std::isnan(bound));
  }
}

}  // namespace
}  // namespace attest
