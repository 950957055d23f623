// What steps that tokens share add to the bound of a row.
#include "reference/softmax/bounds/operand_steps.h"

#include <cmath>

#include "tests/unit/bound_of_row.h"

namespace attest {
namespace {

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

TEST(OperandSteps, AStepIsThatOfTheLargestOfItsGroup) {
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

TEST(OperandSteps, AColumnWithAStepOfItsOwnIsLeftAloneByOthers) {
  Computed c("seq=4 dim=1/2 causal v.fill=constant(3) out=o,lse");
  c.inputs.at(TensorId::v).set(0, 0, 3, 1, std::nan(""));
  Arithmetic a = in_groups(&Rounding::value_operand, &Rounding::value_rounding, OperandFormat::int8, 0, 1);
  a.weight_sum.promote = 4;
  const RowBound bound = first_row(c, {a, DType::f32}).second;
  EXPECT_LT(bound.output[0], 0.02);
  EXPECT_EQ(bound.output[1], kInfinity);
}

TEST(OperandSteps, APowerOfTwoAsAStepLosesUpToTwiceAsMuch) {
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

TEST(OperandSteps, AMeanThatIsRemovedMakesKeysSmaller) {
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

TEST(OperandSteps, TwoPartsOfAnOperandAreThreeProducts) {
  const std::string line = "seq=1 dim=64 scale=1 fill=constant(1) out=o,lse";
  const RowBound plain = bound_of(line, plain_f32());
  Arithmetic a = plain_f32();
  a.query_operand = a.key_operand = OperandFormat::bf16x3;
  const double gained = bound_of(line, a).lse - plain.lse;
  expect_near(gained, 64 * (3 * 0x1p-16 + (1.02 * 194 - 66) * 0x1p-24));
  a.query_rounding.directed = a.key_rounding.directed = true;
  EXPECT_GT(bound_of(line, a).lse - plain.lse, 3.9 * 64 * 3 * 0x1p-16);
}

TEST(OperandSteps, CodesThatShareAStepMayBeScaledBehindIt) {
  // Codes of 10 and 384, which are 10 and 6 with the scales of their tokens.
  Computed c("seq=2x1 dim=1 scale=1 q.dtype=e4m3 q.scale=token k.fill=constant(1) out=o,lse");
  for (std::int64_t i = 0; i < 2; ++i) {
    c.inputs.at(TensorId::q).set(0, 0, i, 0, i == 0 ? 10 : 384);
    c.inputs.at(TensorId::q_scales).set(0, 0, i, 0, i == 0 ? 1 : 0x1p-6);
  }
  const Arithmetic a = in_groups(&Rounding::query_operand, &Rounding::query_rounding, OperandFormat::int8);
  EXPECT_GE(first_row(c, {a, DType::f32}).second.lse, 0.5 * 384 / 127);
}

TEST(OperandSteps, CodesOfBlocksThatShareAStepMayBeScaledBehindIt) {
  // The code 384 is 48 with the scale of its block; the next one's is 8.
  Computed c("seq=2x1 dim=2 scale=1 q.dtype=e4m3 q.scale=block:1 k.fill=constant(1) out=o,lse");
  for (std::int64_t i = 0; i < 2; ++i) {
    for (std::int64_t t = 0; t < 2; ++t) {
      c.inputs.at(TensorId::q).set(0, 0, i, t, i == 0 ? 10 : t == 0 ? 384 : 1);
      c.inputs.at(TensorId::q_scales).set(0, 0, i, t, i == 0 ? 1 : t == 0 ? 0.125 : 8);
    }
  }
  const Arithmetic a = in_groups(&Rounding::query_operand, &Rounding::query_rounding, OperandFormat::int8);
  EXPECT_GE(first_row(c, {a, DType::f32}).second.lse, 0.5 * 384 / 127);
}

TEST(OperandSteps, StepsOfWeightsAreThoseOfTheLargestOfAGroup) {
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

}  // namespace
}  // namespace attest
