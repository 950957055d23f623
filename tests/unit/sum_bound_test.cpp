// How sums of products and weights are stated, in the bound of a row.
#include "reference/softmax/bounds/sum_bound.h"

#include <cmath>

#include "tests/unit/bound_of_row.h"

namespace attest {
namespace {

TEST(SumBound, SumsCountByTheirStepsAndWindows) {
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

TEST(SumBound, WhatUnderflowsIsDividedByTheLeastThatTheSumMayBe) {
  // Products of 2^-34 are 0 in f16. Scores of 4 are off by half a nat where queries are rounded to e5m2.
  for (const bool no_maximum : {false, true}) {
    Arithmetic a = plain_f32();
    a.no_maximum = no_maximum;
    a.value_sum = {.format = SumFormat::f16};
    const std::string line = "seq=1x64 dim=1 scale=4 fill=constant(1) v.fill=constant(5.820766091346741e-11)";
    const double of_exact_scores = first_bound(line, a);
    a.query_operand = OperandFormat::e5m2;
    EXPECT_GE(first_bound(line, a), 1.6 * of_exact_scores) << no_maximum;
    EXPECT_LE(first_bound(line, a), 3 * of_exact_scores) << no_maximum;
  }
  // A weight of exp(-9) loses a tenth of itself in f16, and more where its score was off by a nat.
  Arithmetic a = plain_f32();
  a.no_maximum = true;
  a.stored_weights = DType::f16;
  a.flush_to_zero = true;
  const std::string line = "seq=1 dim=1 scale=9 k.fill=constant(-1) q.fill=constant(1) v.fill=constant(1)";
  const double of_exact_scores = first_bound(line, a);
  EXPECT_LT(of_exact_scores, 1);
  a.query_operand = OperandFormat::e5m2;
  EXPECT_GE(first_bound(line, a), 1.5 * of_exact_scores);
}

}  // namespace
}  // namespace attest
