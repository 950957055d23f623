// The worst-case bound where a formula once fell short: each of these rows is one that a correct kernel produces.
#include "reference/softmax/bounds/error_bound.h"

#include <cmath>

#include "reference/softmax/attention.h"
#include "tests/unit/helpers.h"

namespace attest {
namespace {

/// The first row on the data as they are now, and its bound.
std::pair<Row, RowBound> first_row(const Computed& c, const Producer& producer, std::int64_t terms_of = -1) {
  const Inputs inputs = c.inputs.views();
  const Head head(c.problem, inputs, 0, 0);
  std::pair<Row, RowBound> result;
  head.attend(0, result.first);
  bound_row(head, result.first, 0, producer, result.second, terms_of);
  return result;
}

RowBound bound_of(const std::string& line, const Arithmetic& arithmetic) {
  return first_row(Computed(line), {arithmetic, {}}).second;
}

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

TEST(ErrorBound, WeightsComputedTwiceDontCancelAgainstTheirSum) {
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

TEST(ErrorBound, ACapThatTheAccumulatorCannotHoldIsRounded) {
  Arithmetic a;
  a.tanh_ulps = 0.5;
  const std::string line = "seq=1 dim=1 scale=1 q.fill=constant(1) k.fill=constant(1000) out=o,capped softcap=";
  const double held = bound_of(line + "100", a).capped[0], rounded = bound_of(line + "100.1", a).capped[0];
  EXPECT_GE(rounded, held + 100 * 0x1p-24);
}

Arithmetic plain_f32() {
  Arithmetic a;
  a.exp_ulps = a.log_ulps = 1;
  return a;
}

double first_bound(const std::string& line, const Arithmetic& a) { return bound_of(line, a).output[0]; }

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

/// A declaration that rounds one operand in steps of its groups.
Arithmetic in_groups(OperandFormat Rounding::*operand, OperandRounding Rounding::*rounding, OperandFormat format,
                     std::int64_t rows = 0, std::int64_t columns = 0) {
  Arithmetic a = plain_f32();
  a.*operand = format;
  (a.*rounding).step = 0;
  (a.*rounding).rows = rows;
  (a.*rounding).columns = columns;
  (a.*rounding).slack = 0;
  return a;
}

void expect_near(double found, double wanted) {
  EXPECT_GE(found, wanted * (1 - 1e-6));
  EXPECT_LT(found, wanted * 1.002);
}

TEST(ErrorBound, AStepIsThatOfTheLargestOfItsGroup) {
  // Query 0 sees key 0 alone: q is 3, k 4, v 3, lse 12. Tokens that it doesn't see share its steps.
  const auto bound = [&](const Arithmetic& a, double hidden) {
    Computed c("seq=4 dim=1 scale=1 causal q.fill=constant(3) k.fill=constant(4) v.fill=constant(3) out=o,lse");
    for (std::int64_t j = 2; j < 4; ++j) {
      for (const TensorId id : {TensorId::q, TensorId::k, TensorId::v}) c.inputs.at(id).set(0, 0, j, 0, hidden);
    }
    return first_row(c, {a, DType::f32}).second;
  };
  const RowBound plain = bound(plain_f32(), 40);
  const auto of_keys = [](OperandFormat format, std::int64_t rows) {
    return in_groups(&Rounding::key_operand, &Rounding::key_rounding, format, rows);
  };
  const OperandFormat int8 = OperandFormat::int8, e4m3 = OperandFormat::e4m3;
  expect_near(bound(of_keys(int8, 0), 40).lse - plain.lse, 3 * 0.5 * 40 / 127);
  expect_near(bound(of_keys(int8, 2), 40).lse - plain.lse, 3 * 0.5 * 4 / 127);
  expect_near(bound(of_keys(OperandFormat::int4, 1), 40).lse - plain.lse, 3 * 0.5 * 4 / 7);
  expect_near(bound(of_keys(e4m3, 0), 40).lse - plain.lse, 12 * 0x1p-4 + 3 * 0x1p-10 * 40 / 448);
  const Arithmetic of_queries = in_groups(&Rounding::query_operand, &Rounding::query_rounding, int8);
  expect_near(bound(of_queries, 40).lse - plain.lse, 4 * 0.5 * 40 / 127);
  Arithmetic both = of_keys(int8, 0);
  both.query_operand = int8;
  both.query_rounding = both.key_rounding;
  const double h = 0.5 * 40 / 127;
  expect_near(bound(both, 40).lse - plain.lse, 3 * h + 4 * h + h * h);
  Arithmetic values = in_groups(&Rounding::value_operand, &Rounding::value_rounding, int8);
  expect_near(bound(values, 40).output[0] - plain.output[0], 0.5 * 40 / 127);
  EXPECT_EQ(bound(values, 40).lse, plain.lse);
  values.value_rounding.rows = 2;
  expect_near(bound(values, 40).output[0] - plain.output[0], 0.5 * 3 / 127);
  values.value_rounding = {.step = 0.25, .slack = 0};
  expect_near(bound(values, 30).output[0] - plain.output[0], 0.5 * 0.25);
  EXPECT_EQ(bound(values, 32).output[0], kInfinity);  // beyond 127 steps
  // What isn't finite has no step to share.
  for (const double hidden : {static_cast<double>(kInfinity), std::nan("")}) {
    EXPECT_EQ(bound(of_keys(int8, 0), hidden).lse, kInfinity);
    EXPECT_LT(bound(of_keys(int8, 2), hidden).lse, kInfinity);
    EXPECT_EQ(bound(of_queries, hidden).lse, kInfinity);
    EXPECT_EQ(bound(in_groups(&Rounding::value_operand, &Rounding::value_rounding, int8), hidden).output[0], kInfinity);
    values.value_rounding = {.step = 0, .rows = 2};
    EXPECT_LT(bound(values, hidden).output[0], kInfinity);
  }
}

TEST(ErrorBound, AColumnWithAStepOfItsOwnIsLeftAloneByOthers) {
  Computed c("seq=4 dim=1/2 causal v.fill=constant(3) out=o,lse");
  c.inputs.at(TensorId::v).set(0, 0, 3, 1, std::nan(""));
  Arithmetic a = in_groups(&Rounding::value_operand, &Rounding::value_rounding, OperandFormat::int8, 0, 1);
  a.weight_sum.promote = 4;
  const RowBound bound = first_row(c, {a, DType::f32}).second;
  EXPECT_LT(bound.output[0], 0.02);
  EXPECT_EQ(bound.output[1], kInfinity);
}

TEST(ErrorBound, APowerOfTwoAsAStepLosesUpToTwiceAsMuch) {
  const std::string line = "seq=1 dim=1 scale=1 q.fill=constant(1) k.fill=constant(7) v.fill=constant(7) out=o,lse";
  const RowBound plain = bound_of(line, plain_f32());
  Arithmetic a = in_groups(&Rounding::value_operand, &Rounding::value_rounding, OperandFormat::e4m3);
  a.value_rounding.power_of_two = true;  // 7 is 448 of the step 2^-6, and 7.9 saturates there
  expect_near(bound_of(line, a).output[0] - plain.output[0], 7 * 0x1p-3 + 0x1p-10 * 7 / 256);
  a = in_groups(&Rounding::value_operand, &Rounding::value_rounding, OperandFormat::int8);
  a.value_rounding.power_of_two = true;
  expect_near(bound_of(line, a).output[0] - plain.output[0], 7 / 127.0);
  a.value_rounding.power_of_two = false;
  a.value_rounding.directed = true;
  expect_near(bound_of(line, a).output[0] - plain.output[0], 7 / 127.0);
}

TEST(ErrorBound, AMeanThatIsRemovedMakesKeysSmaller) {
  // Keys of 100 and 101 lie half of 1 off their mean.
  const auto bound = [&](const Arithmetic& a, const std::string& more = "") {
    Computed c("seq=1x2 dim=1 scale=1 q.fill=constant(1) k.fill=constant(100) out=o,lse,raw" + more);
    c.inputs.at(TensorId::k).set(0, 0, 1, 0, 101);
    return first_row(c, {a, DType::f32}).second;
  };
  Arithmetic a = in_groups(&Rounding::key_operand, &Rounding::key_rounding, OperandFormat::int8);
  const double plain = bound(plain_f32()).lse;
  expect_near(bound(a).lse - plain, 0.5 * 101 / 127);
  a.key_rounding.mean_removed = true;
  EXPECT_GE(bound(a).lse, 0.5 * 0.5 / 127 * 0.5);
  EXPECT_LT(bound(a).lse, 0.01);
  EXPECT_EQ(bound(a).raw[0], kInfinity);  // raw scores are of other keys
  a.key_rounding.mean_format = OperandFormat::bf16;
  EXPECT_GE(bound(a).lse, 2 * 100 * 0x1p-8);  // the mean isn't known, and lse gets its product back
  EXPECT_EQ(bound(a, " softcap=50").lse, kInfinity);
  EXPECT_EQ(bound(a, " sinks=1").lse, kInfinity);
}

TEST(ErrorBound, TwoPartsOfAnOperandAreThreeProducts) {
  const std::string line = "seq=1 dim=64 scale=1 fill=constant(1) out=o,lse";
  const RowBound plain = bound_of(line, plain_f32());
  Arithmetic a = plain_f32();
  a.query_operand = a.key_operand = OperandFormat::bf16x3;
  const double gained = bound_of(line, a).lse - plain.lse;
  expect_near(gained, 64 * (3 * 0x1p-16 + (1.02 * 194 - 66) * 0x1p-24));
  a.query_rounding.directed = a.key_rounding.directed = true;
  EXPECT_GT(bound_of(line, a).lse - plain.lse, 3.9 * 64 * 3 * 0x1p-16);
}

TEST(ErrorBound, StepsOfWeightsAreThoseOfTheLargestOfAGroup) {
  // Weights are 1, 1, e^-4 and e^-4 over their sum, the value 1 is that of the last.
  Computed c("seq=1x4 dim=1 scale=1 q.fill=constant(1) out=o,lse");
  for (std::int64_t j = 0; j < 4; ++j) {
    c.inputs.at(TensorId::k).set(0, 0, j, 0, j < 2 ? 0 : -4);
    c.inputs.at(TensorId::v).set(0, 0, j, 0, j == 3);
  }
  const auto bound = [&](const Arithmetic& a) { return first_row(c, {a, DType::f32}).second; };
  const RowBound plain = bound(plain_f32());
  Arithmetic a = in_groups(&Rounding::weight_operand, &Rounding::weight_rounding, OperandFormat::int8);
  const double sum = 2 + 2 * std::exp(-4), small = std::exp(-4) / sum;
  expect_near(bound(a).output[0] - plain.output[0], 0.5 / 127 / sum);
  a.weight_rounding.rows = 2;
  expect_near(bound(a).output[0] - plain.output[0], 0.5 / 127 * small);
  EXPECT_EQ(bound(a).lse, plain.lse);
  a.sum_of_stored = true;
  const double in_sum = 0.5 / 127 * (2 / sum + 2 * small);
  expect_near(bound(a).lse - plain.lse, -std::log1p(-in_sum));
}

TEST(ErrorBound, SumsCountByTheirStepsAndWindows) {
  // One query of 1 and keys of 1: each score is d, whatever is added. With equal scores the output is the mean of V.
  const std::string line = "seq=1x64 dim=64 scale=1 fill=constant(1) out=o,lse";
  const RowBound plain = bound_of(line, plain_f32());
  const double u = 0x1p-11;
  const auto of_scores = [&](const Sum& sum) {
    Arithmetic a = plain_f32();
    a.score_sum = sum;
    return bound_of(line, a).lse - plain.lse;
  };
  const auto near = [](double found, double wanted) {
    EXPECT_GE(found, 0.98 * wanted);
    EXPECT_LT(found, 1.06 * wanted);
  };
  near(of_scores({.format = SumFormat::f16}), 64 * 64 * u);
  near(of_scores({.format = SumFormat::f16, .promote = 8}), 64 * 8 * u);
  near(of_scores({.format = SumFormat::f16, .directed = true}), 64 * 64 * 2 * u / (1 - 64 * 2 * u));
  near(of_scores({.width = 16, .bits = 13, .directed = true}), 64 * (64 + 2 * 4) * 0x1p-13);
  EXPECT_LT(of_scores({.format = SumFormat::exact}), 0);
  near(of_scores({.promote = 1}), 64 * 0x1p-24);  // one product, and 64 sums of windows
  const auto of_values = [&](const Sum& sum, const std::string& more = "") {
    Arithmetic a = plain_f32();
    a.value_sum = sum;
    const RowBound bound = bound_of(line + more, a);
    EXPECT_EQ(bound.lse, plain.lse);
    return bound.output[0];
  };
  near(of_values({.format = SumFormat::f16}), 64 * u / (1 - 64 * u));
  near(of_values({.format = SumFormat::f16, .promote = 8}), 8 * u);
  EXPECT_EQ(of_values({.format = SumFormat::f16}, " v.fill=constant(600)"), kInfinity);  // 64 * 600 > 65504 / 2
  // Products of 2^-27 are 0 in f16, each of them, however the sum is promoted.
  EXPECT_GE(of_values({.format = SumFormat::f16, .promote = 8}, " v.fill=constant(7.450580596923828e-09)"), 0x1p-27);
  Arithmetic a = plain_f32();
  a.weight_sum = {.format = SumFormat::f16};
  const RowBound weights = bound_of(line + ",weights", a);
  near(weights.lse - plain.lse, -std::log1p(-64 * u / (1 - 64 * u)));
  near(weights.output[0], 64 * u / (1 - 64 * u));
  near(weights.weights[0], 64 * u / (1 - 64 * u) / 64);
  a.value_sum = a.weight_sum;  // the sum by which it is divided is off by as much again
  const double of_sum = 64 * u / (1 - 64 * u);
  EXPECT_GE(bound_of(line, a).output[0], 2 * of_sum + of_sum * of_sum);
  a.value_sum = {};
  // Under a maximum that lags by 4 nats, 700 weights of up to 54 pass half of the range.
  a.key_block = 16;
  EXPECT_LT(first_bound("seq=1x700 dim=1 fill=constant(1)", a), kInfinity);
  a.lazy_threshold = 4;
  EXPECT_EQ(first_bound("seq=1x700 dim=1 fill=constant(1)", a), kInfinity);
  Arithmetic of_products = plain_f32();
  of_products.score_sum.format = SumFormat::f16;
  const std::string large = "seq=1x2 dim=1 scale=0.001 k.fill=constant(200) q.fill=constant(";
  EXPECT_LT(bound_of(large + "160) out=o,lse", of_products).lse, kInfinity);
  EXPECT_EQ(bound_of(large + "170) out=o,lse", of_products).lse, kInfinity);  // 170 * 200 > 65504 / 2
}

TEST(ErrorBound, WeightsOfEightBitsLoseMoreThanTheirRoundoff) {
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

TEST(ErrorBound, ApproximatedExponentialsCountBesideTheirUlps) {
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

/// A reciprocal of 255 rounds, and so does the product with it.
TEST(ErrorBound, AFactorOfWeightsIsDividedByAsTheirSumIs) {
  const std::string line = "seq=1 dim=1 scale=1 v.fill=constant(3)";
  Arithmetic a = plain_f32();
  a.weight_operand = OperandFormat::u8;
  a.weight_factor = 255;
  a.normalised_before_storage = true;
  const double by_division = bound_of(line, a).output[0];
  a.division = Division::reciprocal;
  EXPECT_GE(bound_of(line, a).output[0] - by_division, 3 * 1.9 * 0x1p-24);
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
