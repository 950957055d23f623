// What weights lose on their way into a product, in the bound of a row.
#include "reference/softmax/bounds/weight_errors.h"

#include <algorithm>
#include <cmath>

#include "tests/unit/bound_of_row.h"

namespace attest {
namespace {

TEST(WeightErrors, WeightsComputedTwiceDontCancelAgainstTheirSum) {
  // Equal values: the error of a weight cancels, unless the sum had another one.
  const std::string line = "seq=1x64 dim=4 v.fill=constant(1)";
  Arithmetic a;
  a.exp_ulps = 1000;
  a.normalised_before_storage = true;
  const double one_pass = bound_of(line, a).output[0];
  a.key_block = 16;
  EXPECT_GE(bound_of(line, a).output[0], 2 * 2000 * 0x1p-24);
  EXPECT_LT(one_pass, 200 * 0x1p-24);
}

TEST(WeightErrors, WeightsOfEightBitsLoseMoreThanTheirRoundoff) {
  // Four equal scores and one value of 1 among zeros: l is 4, the output a quarter.
  Computed c("seq=1x4 dim=1 q.fill=constant(0) out=o,lse");
  for (std::int64_t j = 0; j < 4; ++j) c.inputs.at(TensorId::v).set(0, 0, j, 0, j == 0);
  const auto bound = [&](const Arithmetic& a) { return first_row(c, {a, DType::f32}).second; };
  const RowBound plain = bound(plain_f32());
  Arithmetic a = plain_f32();
  a.weight_operand = OperandFormat::e4m3;
  a.weight_factor = 256;
  const double of_e4m3 = 0x1p-4 / 4 + 0x1p-18 / 4;  // u_P of the value's share, and what a weight may underflow by
  EXPECT_GE(bound(a).output[0], of_e4m3);
  EXPECT_LT(bound(a).output[0], 1.01 * of_e4m3);
  EXPECT_LT(bound(a).lse, plain.lse + 0x1p-18);  // the sum is of weights as they were
  a.weight_operand = OperandFormat::int8;
  a.weight_factor = 127;
  const double lost = 0.5 / 127;
  EXPECT_GE(bound(a).output[0], lost / 4);
  EXPECT_LT(bound(a).output[0], 1.01 * lost / 4);
  a.sum_of_stored = true;  // then each of the four weights is off, in the sum, too
  EXPECT_GE(bound(a).lse, -std::log1p(-lost));
  EXPECT_LT(bound(a).lse, 1.01 * -std::log1p(-lost));
  const double of_centre = (lost / 4 * 0.75 + 3 * lost / 4 * 0.25) / (1 - lost);
  EXPECT_GE(bound(a).output[0], of_centre);
  EXPECT_LT(bound(a).output[0], 1.01 * of_centre);
  a.sum_of_stored = false;
  a.normalised_before_storage = true;  // a quarter loses as much as 1 does
  EXPECT_GE(bound(a).output[0], lost);
  EXPECT_LT(bound(a).output[0], 1.01 * lost);
  a = plain_f32();
  a.weight_operand = OperandFormat::e4m3;
  a.weight_factor = 500;  // a weight of 1 isn't held
  EXPECT_EQ(bound(a).output[0], kInfinity);
}

TEST(WeightErrors, ApproximatedExponentialsCountBesideTheirUlps) {
  // Four equal scores: l is 4, and W what one weight is off by.
  const std::string line = "seq=1x4 dim=1 q.fill=constant(0) out=o,lse";
  const RowBound plain = bound_of(line, plain_f32());
  Arithmetic a = plain_f32();
  a.exp_absolute = 0x1p-10;
  const auto near = [](double found, double wanted) {
    EXPECT_GE(found, wanted);
    EXPECT_LT(found, 1.01 * wanted);
  };
  near(bound_of(line, a).lse - plain.lse, -std::log1p(-0x1p-10));
  a.key_block = 1;  // four rescalings
  near(bound_of(line, a).lse, -std::log1p(-0x1p-10 * 5));
  a.rescale_ulps = 1;
  near(bound_of(line, a).lse, -std::log1p(-0x1p-10));
  a = plain_f32();
  a.key_block = 1;
  a.exp_ulps = 0x1p14;
  const double online = bound_of(line, a).lse;
  near(online, 5 * 0x1p-9);
  a.rescale_ulps = 1;
  near(bound_of(line, a).lse, 0x1p-9);
  // Scores 16 apart, the argument of the lower one is rounded to bf16.
  const std::string apart = "seq=1x2 dim=1 scale=1 q.fill=constant(1) mask=add:11QK:normal out=o,lse";
  a = plain_f32();
  const RowBound exact = bound_of(apart, a);
  a.exp_argument = OperandFormat::bf16;
  const Row row = Computed(apart).row(0);
  const double below = row.max - std::min(row.biased[0], row.biased[1]);
  const double share = std::min(row.weights[0], row.weights[1]);
  near(bound_of(apart, a).lse - exact.lse, share * 0x1p-8 * below);
}

TEST(WeightErrors, ArgumentsBeyondTheLargestNumberStayThere) {
  // A score of -480 enters exp as -448 in e4m3, and as it is, but for an eighth, in e5m2.
  const std::string line = "dtype=f64 seq=1 dim=1 scale=1 q.fill=constant(480) k.fill=constant(-1) out=o,lse";
  Arithmetic a;
  a.accumulator = DType::f64;
  a.no_maximum = true;
  a.exp_argument = OperandFormat::e5m2;
  EXPECT_LT(bound_of(line, a).lse, 100);
  a.exp_argument = OperandFormat::e4m3;
  EXPECT_GE(bound_of(line, a).lse, 480 - 448);
  EXPECT_LT(bound_of(line, a).lse, kInfinity);
  a.base2 = true;  // 448 in units of log(2)
  EXPECT_GE(bound_of(line, a).lse, 480 - 448 * 0.6932);
  // exp(-707) is a normal number, and what is left of it where -707 was rounded to f16 may be none.
  const std::string least = "dtype=f64 seq=1 dim=1 scale=1 q.fill=constant(707) k.fill=constant(-1) out=o,lse";
  a = Arithmetic();
  a.accumulator = DType::f64;
  a.no_maximum = true;
  EXPECT_LT(bound_of(least, a).lse, kInfinity);
  a.exp_argument = OperandFormat::bf16;
  EXPECT_EQ(bound_of(least, a).lse, kInfinity);
}

TEST(WeightErrors, AnApproximatedExpMayGiveMoreThanZeroOfMinusInfinity) {
  // Scores of 0 and -inf: the weight of the second is as far from 0 as exp may be.
  Computed c("seq=1x2 dim=1 scale=1 q.fill=constant(1) k.fill=constant(0) out=o,weights");
  c.inputs.at(TensorId::k).set(0, 0, 1, 0, -kInfinity);
  Arithmetic a = plain_f32();
  a.exp_absolute = 0x1p-10;
  EXPECT_GE(first_row(c, {a, {}}).second.weights[1], 0x1p-10);
  EXPECT_GE(first_row(c, {a, {}}).second.output[0], 0x1p-11);  // of values that aren't equal
  a.weights_from_lse = true;
  EXPECT_GE(first_row(c, {a, {}}).second.weights[1], 0x1p-10);
}

TEST(WeightErrors, NothingIsClaimedOfASumThatMayBeZero) {
  const std::string line = "seq=1 dim=1 scale=1 v.fill=constant(1) q.fill=constant(-1) k.fill=constant(";
  Arithmetic a = plain_f32();
  a.no_maximum = true;
  a.exp_absolute = 1e-4;
  EXPECT_LT(first_bound(line + "2)", a), kInfinity);
  EXPECT_EQ(first_bound(line + "12)", a), kInfinity);  // exp(-12) is 6e-6
}

/// A reciprocal of 255 rounds, and so does the product with it.
TEST(WeightErrors, AFactorOfWeightsIsDividedByAsTheirSumIs) {
  const std::string line = "seq=1 dim=1 scale=1 v.fill=constant(3)";
  Arithmetic a = plain_f32();
  a.weight_operand = OperandFormat::u8;
  a.weight_factor = 255;
  a.normalised_before_storage = true;
  const double by_division = bound_of(line, a).output[0];
  a.division = Division::reciprocal;
  EXPECT_GE(bound_of(line, a).output[0] - by_division, 3 * 1.9 * 0x1p-24);
}

TEST(WeightErrors, ExpMinus1IsNeverTooSmall) {
  EXPECT_EQ(most_exp_minus_1(0), 0);
  for (double x = 0x1p-1000; x < 4; x *= 1.37) {
    const long double exact = std::expm1(static_cast<long double>(x));
    EXPECT_GE(most_exp_minus_1(x), exact * (1 - 0x1p-51L)) << x;
    EXPECT_LE(most_exp_minus_1(x), exact * (1 + 4e-7L)) << x;
  }
}

}  // namespace
}  // namespace attest
