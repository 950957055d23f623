// The worst-case bound where a formula once fell short: each of these rows is one that a correct kernel produces.
#include "reference/softmax/bounds/error_bound.h"

#include <cmath>

#include "reference/softmax/attention.h"
#include "tests/unit/bound_of_row.h"

namespace attest {
namespace {

TEST(ErrorBound, EachResultIsStoredInItsOwnType) {
  const std::string line = "dtype=bf16 seq=1x9 dim=4 out=o,lse,weights seed=3";
  const Arithmetic a;
  const RowBound plain = bound_of(line, a), wide = bound_of(line + " out.dtype=f32", a);
  const RowBound narrow = bound_of(line + " lse.dtype=f16 weights.dtype=f32", a);
  const Row row = Computed(line).row(0);
  for (std::size_t c = 0; c < plain.output.size(); ++c) {
    const double size = std::fabs(row.output[c]);
    EXPECT_GE(plain.output[c], unit_roundoff(DType::bf16) * size);
    EXPECT_LT(wide.output[c], 0x1p-18 * (1 + size)) << "no rounding to bf16";
    EXPECT_EQ(narrow.output[c], plain.output[c]);
  }
  EXPECT_EQ(wide.lse, plain.lse);
  EXPECT_GE(narrow.lse, unit_roundoff(DType::f16) * std::fabs(row.lse));
  for (std::size_t j = 0; j < row.weights.size(); ++j) EXPECT_LT(narrow.weights[j], plain.weights[j] / 100);
}

TEST(ErrorBound, ARowOfNaNThatDropoutLeavesOutMayBeZero) {
  bool left_out = false, kept = false;
  for (int seed = 0; seed < 20; ++seed) {
    Computed c("seq=1x1 dim=1 dropout=0.5 seed=" + std::to_string(seed));
    c.inputs.at(TensorId::q).set(0, 0, 0, 0, kNaN);
    const auto [row, bound] = first_row(c, {Arithmetic{}, DType::f32});
    const bool dropped = row.factors[0] == 0;
    EXPECT_EQ(bound.output[0], dropped ? kInfinity : 0) << seed;
    (dropped ? left_out : kept) = true;
  }
  EXPECT_TRUE(left_out && kept);
}

TEST(ErrorBound, ACapBeforeAScaleOf0IsUndecidedBesideInfinity) {
  // The cap of an infinite product is a number, and 0 times it 0. Who scales first multiplies 0 by infinity.
  Computed c("seq=1x1 dim=1 scale=0 softcap=20:unscaled out=biased");
  c.inputs.at(TensorId::q).set(0, 0, 0, 0, kInfinity);
  const auto [row, bound] = first_row(c, {Arithmetic{}, DType::f32});
  EXPECT_TRUE(std::isnan(row.raw[0]));
  EXPECT_EQ(row.biased[0], 0);
  EXPECT_EQ(bound.raw[0], 0);
  EXPECT_EQ(bound.capped[0], kInfinity);
  EXPECT_EQ(bound.biased[0], kInfinity);
  EXPECT_EQ(bound.output[0], kInfinity);
}

TEST(ErrorBound, FlushedValuesCountWithTheirDropoutFactors) {
  // Values of 2^-127 that count as 0: all of the output is lost, and dropout multiplied it by up to 1000.
  Arithmetic a;
  a.flush_to_zero = true;
  const std::string line = "seq=1x64 dim=1 q.fill=constant(0) dropout=0.999 v.fill=constant(";
  const double tiny = 0x1p-127;
  bool kept = false;
  for (int seed = 0; seed < 20; ++seed) {
    const std::string whole = line + std::to_string(0) + ") seed=" + std::to_string(seed);
    Computed c(whole);
    for (std::int64_t j = 0; j < 64; ++j) c.inputs.at(TensorId::v).set(0, 0, j, 0, tiny);
    const auto [row, bound] = first_row(c, {a, DType::f32});
    kept = kept || row.output[0] > 3 * 0x1p-126;
    EXPECT_GE(bound.output[0], row.output[0]) << seed;
  }
  EXPECT_TRUE(kept);  // some seed keeps a key: its value times 1000 / 64
}

TEST(ErrorBound, WhereFloat64LeavesScoresOpenTheOutputMayBeAnyOfTheValues) {
  // Both scores are 2^60 in float64, and the weights of the reference 1/2. Exactly the first is larger by 100.
  const auto rows_bound = [](double big, DType accumulator) {
    Computed c("dtype=f64 seq=1x2 dim=2/1 scale=1 q.fill=constant(1) out=o,lse,weights");
    const double keys[2][2] = {{big, 100}, {big, 0}};
    for (std::int64_t j = 0; j < 2; ++j) {
      for (std::int64_t d = 0; d < 2; ++d) c.inputs.at(TensorId::k).set(0, 0, j, d, keys[j][d]);
      c.inputs.at(TensorId::v).set(0, 0, j, 0, static_cast<double>(j));
    }
    Arithmetic a;
    a.accumulator = a.stored_weights = accumulator;
    const auto [row, bound] = first_row(c, {a, DType::f64});
    EXPECT_EQ(bound.output.size(), 1);
    return std::pair(row.output[0], bound);
  };
  for (const DType accumulator : {DType::f64, DType::f32}) {
    const auto [reference, bound] = rows_bound(0x1p60, accumulator);
    EXPECT_EQ(reference, 0.5);
    EXPECT_GE(bound.output[0], 1);  // 0 exactly, and 1 where the second score is rounded up
    EXPECT_GE(bound.weights[0], 1);
    EXPECT_LT(bound.output[0], 1.001);
  }
  const auto [reference, bound] = rows_bound(1, DType::f64);
  EXPECT_LT(bound.output[0], 1e-12);
}

TEST(ErrorBound, AFiniteMaskThatOverflowsInBaseTwoProvesNothing) {
  // -FLT_MAX for every key: times log2(e) that is -inf, and -inf minus -inf is no number.
  const std::string line = "seq=1x4 dim=4 mask=add:111K:finitemin(1) out=o,lse,biased";
  Arithmetic a;
  EXPECT_TRUE(std::isfinite(bound_of(line, a).output[0]));
  a.base2 = true;
  const RowBound bound = bound_of(line, a);
  EXPECT_EQ(bound.output[0], kInfinity);
  EXPECT_EQ(bound.lse, kInfinity);
  EXPECT_EQ(bound.biased[0], kInfinity);
}

TEST(ErrorBound, StoredScoresHaveTheRangeOfTheirType) {
  // Scores of 70000 are an infinity in f16 and numbers in bf16.
  const std::string line = "seq=1x4 dim=1 scale=1 q.fill=constant(1) k.fill=constant(70000) out=o,lse,raw,biased";
  Arithmetic a;
  a.score_stores = 1;
  a.stored_scores = DType::bf16;
  EXPECT_TRUE(std::isfinite(bound_of(line, a).output[0]));
  a.stored_scores = DType::f16;
  const RowBound bound = bound_of(line, a);
  EXPECT_EQ(bound.output[0], kInfinity);
  EXPECT_EQ(bound.lse, kInfinity);
  EXPECT_EQ(bound.raw[0], kInfinity);
  a.score_stores = 0;  // never stored
  EXPECT_TRUE(std::isfinite(bound_of(line, a).output[0]));
}

TEST(ErrorBound, AStoreBeforeTheBiasCountsWithTheScoreThatItHolds) {
  // The mask nearly takes the score away again: what its store lost stays.
  const std::string line =
      "seq=1x2 dim=1 scale=1 q.fill=constant(1) k.fill=constant(1000) mask=add:111K:normal out=o,raw";
  Computed c(line);
  for (std::int64_t j = 0; j < 2; ++j) c.inputs.at(TensorId::mask).set(0, 0, 0, j, -1000);
  Arithmetic a;
  a.stored_scores = DType::bf16;
  a.score_stores = 1;
  const RowBound bound = first_row(c, {a, DType::f32}, 0).second;
  EXPECT_GE(bound.terms.score, 1000 * 0x1p-8);
  EXPECT_GE(bound.raw[0], 1000 * 0x1p-8);
}

TEST(ErrorBound, ScoresInBaseTwoAreRoundedOnTheirWayThere) {
  // One key: lse is the score. Its scale and log2(e) are factors with two roundings each, folded into one or not.
  const std::string line = "seq=1 dim=1 scale=1000 q.fill=constant(1) k.fill=constant(1) out=o,lse";
  Arithmetic natural, base2, folded;
  base2.base2 = folded.base2 = true;
  folded.scale = ScalePlacement::folded_log2e;
  EXPECT_GE(bound_of(line, base2).lse, bound_of(line, natural).lse + 2000 * 0x1p-24);
  EXPECT_EQ(bound_of(line, base2).lse, bound_of(line, folded).lse);
}

TEST(ErrorBound, AMaximumThatLagsMakesTheLogarithmLarger) {
  Arithmetic prompt, lazy;
  prompt.log_ulps = lazy.log_ulps = 100;
  prompt.key_block = lazy.key_block = 8;
  lazy.lazy_threshold = 8;
  const std::string line = "seq=1x16 dim=4 out=o,lse";
  EXPECT_GE(bound_of(line, lazy).lse, bound_of(line, prompt).lse + 8 * 200 * 0x1p-24);
  lazy.lazy_threshold = 12;  // weights up to exp(12) pass the range of f16
  lazy.stored_weights = DType::f16;
  EXPECT_EQ(bound_of(line, lazy).output[0], kInfinity);
}

TEST(ErrorBound, ASumOfStoredWeightsLosesWhatUnderflows) {
  // One key has all of the weight, 63 have 2^-26 each: nothing of them is left in f16, in the sum either.
  const double score = std::log(0x1p-26);
  Computed c("seq=1x64 dim=1 scale=1 q.fill=constant(1) k.fill=constant(0) v.fill=constant(1) out=o,lse");
  for (std::int64_t j = 1; j < 64; ++j) c.inputs.at(TensorId::k).set(0, 0, j, 0, score);
  for (std::int64_t j = 1; j < 64; ++j) c.inputs.at(TensorId::v).set(0, 0, j, 0, 0);
  Arithmetic a;
  a.accumulator = DType::f64;
  a.stored_weights = DType::f16;
  a.sum_of_stored = true;
  const auto [row, bound] = first_row(c, {a, DType::f32});
  EXPECT_GE(bound.output[0], 1 - row.output[0]);  // the kernel's answer is 1
  EXPECT_GE(bound.lse, row.lse);                  // and 0
}

TEST(ErrorBound, ACapThatTheAccumulatorCannotHoldIsRounded) {
  Arithmetic a;
  a.tanh_ulps = 0.5;
  const std::string line = "seq=1 dim=1 scale=1 q.fill=constant(1) k.fill=constant(1000) out=o,capped softcap=";
  const double held = bound_of(line + "100", a).capped[0], rounded = bound_of(line + "100.1", a).capped[0];
  EXPECT_GE(rounded, held + 100 * 0x1p-24);
}

TEST(ErrorBound, GrowsWithWhatAnArithmeticAdmits) {
  const std::string line = "seq=64 dim=64";
  const double plain = first_bound(line, plain_f32());
  EXPECT_GT(plain, 0);
  EXPECT_LT(plain, 1e-4);
  Arithmetic worse = plain_f32();
  worse.exp_ulps = 100;
  EXPECT_GT(first_bound(line, worse), plain);
  worse = plain_f32();
  worse.key_block = 8;
  EXPECT_GT(first_bound(line, worse), plain);
  worse = plain_f32();
  worse.stored_weights = DType::bf16;
  EXPECT_GT(first_bound(line, worse), 100 * plain);
  Arithmetic better = plain_f32();
  better.accumulator = better.stored_weights = DType::f64;
  EXPECT_LT(first_bound(line, better), plain);
}

TEST(ErrorBound, RoundedOperandsCountWithTheScoreAndTheValue) {
  // One key: lse is the score and the output the value. |q*k| is 12, the scale 1, and |v| is 3.
  const std::string line = "seq=1 dim=1 scale=1 q.fill=constant(3) k.fill=constant(4) v.fill=constant(3) out=o,lse";
  Arithmetic a = plain_f32();
  const RowBound plain = bound_of(line, a);
  a.query_operand = OperandFormat::tf32;
  a.key_operand = OperandFormat::bf16;
  const RowBound scores = bound_of(line, a);
  const double of_scores = 12 * (0x1p-11 + 0x1p-8 + 0x1p-19);
  EXPECT_GE(scores.lse - plain.lse, of_scores);
  EXPECT_LT(scores.lse - plain.lse, 1.001 * of_scores);
  a = plain_f32();
  a.value_operand = OperandFormat::f16;
  const RowBound values = bound_of(line, a);
  EXPECT_EQ(values.lse, plain.lse);
  EXPECT_GE(values.output[0] - plain.output[0], 3 * 0x1p-11 + 0x1p-25);
  EXPECT_LT(values.output[0] - plain.output[0], 1.001 * (3 * 0x1p-11 + 0x1p-25));
  a = plain_f32();
  a.weight_operand = OperandFormat::bf16;
  Arithmetic stored = plain_f32();
  stored.stored_weights = DType::bf16;
  EXPECT_EQ(bound_of(line, a).output, bound_of(line, stored).output);  // the same in other words
}

TEST(ErrorBound, OperandsBeyondTheirFormatProveNothing) {
  Arithmetic a = plain_f32();
  a.key_operand = OperandFormat::f16;
  const std::string of_keys = "seq=1x2 dim=1 k.fill=constant(70000) out=o,lse";
  EXPECT_EQ(bound_of(of_keys, a).lse, kInfinity);
  a.key_operand = OperandFormat::bf16;
  EXPECT_LT(bound_of(of_keys, a).lse, kInfinity);
  a.value_operand = OperandFormat::f16;
  const std::string of_values = "seq=1x2 dim=1 v.fill=constant(70000) out=o,lse";
  EXPECT_EQ(first_bound(of_values, a), kInfinity);
  EXPECT_LT(bound_of(of_values, a).lse, kInfinity);
}

TEST(ErrorBound, NothingIsClaimedOfAnInfinityThatIsDividedIntoParts) {
  Computed c("seq=1x2 dim=2 fill=constant(1) out=o,lse,raw,weights");
  const auto bound = [&](Arithmetic a) { return first_row(c, {a, {}}).second; };
  c.inputs.at(TensorId::v).set(0, 0, 1, 0, kInfinity);
  Arithmetic a = plain_f32();
  EXPECT_EQ(bound(a).output[0], 0);  // the data decide
  a.value_operand = OperandFormat::bf16x3;
  EXPECT_EQ(bound(a).output[0], kInfinity);
  EXPECT_LT(bound(a).output[1], kInfinity);
  c.inputs.at(TensorId::v).set(0, 0, 1, 0, 1);
  c.inputs.at(TensorId::k).set(0, 0, 1, 0, -kInfinity);
  a = plain_f32();
  EXPECT_LT(bound(a).output[0], kInfinity);
  a.key_operand = OperandFormat::bf16x3;
  const RowBound split = bound(a);
  EXPECT_EQ(split.output[0], kInfinity);
  EXPECT_EQ(split.lse, kInfinity);
  EXPECT_EQ(split.raw[1], kInfinity);
  EXPECT_EQ(split.weights[1], kInfinity);
}

TEST(ErrorBound, NothingIsClaimedOfNaNInAFormatThatHasNone) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Computed c("seq=1x2 dim=1 fill=constant(1) out=o,lse");
  c.inputs.at(TensorId::k).set(0, 0, 1, 0, nan);
  const auto bound = [&](Arithmetic a) { return first_row(c, {a, {}}).second; };
  Arithmetic a = plain_f32();
  EXPECT_EQ(bound(a).output[0], 0);  // NaN, whatever the arithmetic
  a.weight_operand = OperandFormat::e4m3;
  EXPECT_EQ(bound(a).output[0], 0);
  a.weight_rounding.step = 0;  // of a group's largest number, which may leave NaN out
  EXPECT_EQ(bound(a).output[0], kInfinity);
  a.weight_rounding.step = 1;
  a.weight_operand = OperandFormat::e2m1;
  EXPECT_EQ(bound(a).output[0], kInfinity);
  EXPECT_EQ(bound(a).lse, 0);
  a.sum_of_stored = true;
  EXPECT_EQ(bound(a).lse, kInfinity);
  a = plain_f32();
  a.key_operand = OperandFormat::e5m2;
  EXPECT_EQ(bound(a).output[0], kInfinity);
  c.inputs.at(TensorId::k).set(0, 0, 1, 0, 1);
  c.inputs.at(TensorId::v).set(0, 0, 1, 0, kInfinity);
  a = plain_f32();
  EXPECT_EQ(bound(a).output[0], 0);
  a.value_operand = OperandFormat::e4m3;  // 448
  EXPECT_EQ(bound(a).output[0], kInfinity);
}

TEST(ErrorBound, AScoreMayBeStoredBeforeItIsScaled) {
  // 16 * 90 * 90 is 129,600, which f16 doesn't hold; a quarter of it is held.
  const std::string line = "seq=1 dim=16 scale=0.25 fill=constant(90) out=o,raw";
  Arithmetic a = plain_f32();
  a.stored_scores = DType::f16;
  a.score_stores = 1;
  EXPECT_EQ(bound_of(line, a).raw[0], kInfinity);
  EXPECT_LT(bound_of("seq=1 dim=16 scale=0.25 fill=constant(60) out=o,raw", a).raw[0], kInfinity);
}

TEST(ErrorBound, ScalesBehindTheProductsAreRoundings) {
  const std::string line = "seq=1 dim=1 scale=1 q.fill=constant(3) k.fill=constant(4) v.fill=constant(3) out=o,lse";
  const RowBound plain = bound_of(line, plain_f32());
  Arithmetic a = plain_f32();
  a.score_roundings = 8;
  EXPECT_GE(bound_of(line, a).lse - plain.lse, 12 * 8 * 0x1p-24);
  a = plain_f32();
  a.output_roundings = 2;
  EXPECT_GE(bound_of(line, a).output[0] - plain.output[0], 3 * 2 * 0x1p-24);
  EXPECT_EQ(bound_of(line, a).lse, plain.lse);
}

TEST(ErrorBound, ConstantValuesHaveNoErrorFromTheWeights) {
  // Outputs are convex combinations: with one value for all keys only rounding of the sum is left.
  EXPECT_LT(first_bound("seq=8x64 dim=64 v.fill=constant(1) fill=spread(300)", plain_f32()), 3e-5);
}

TEST(ErrorBound, EmptyRowsAreExactAndOverflowProvesNothing) {
  EXPECT_EQ(first_bound("seq=2x0 dim=4", plain_f32()), 0);
  EXPECT_EQ(first_bound("seq=4 dim=4 scale=1e30 fill=huge", plain_f32()), kInfinity);
}

}  // namespace
}  // namespace attest
