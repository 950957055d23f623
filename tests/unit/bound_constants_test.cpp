// Constants of a bound are those of its arithmetic and call, and bounds that share them are those found alone.
#include "reference/softmax/bounds/bound_constants.h"

#include <gtest/gtest.h>

#include <cmath>

#include "harness/cases/inputs.h"
#include "reference/options/case_line.h"
#include "reference/softmax/bounds/error_bound.h"

namespace attest {
namespace {

TEST(BoundConstants, ComeFromTheArithmetic) {
  const Problem p = parse_case("seq=4x300 dim=16 scale=-3 softcap=0.3 sinks");
  Arithmetic a;
  const BoundConstants plain(p, {a, DType::f16});
  EXPECT_EQ(plain.u, 0x1p-24);
  EXPECT_EQ(plain.storing.u, 0x1p-11);
  EXPECT_EQ(plain.u_weights, 0);
  EXPECT_EQ(plain.scale_roundings, 2 + 2);  // 0.3 is rounded in f32, too
  EXPECT_EQ(plain.blocks, 1);               // the sink's
  EXPECT_GE(plain.of_cap, plain.e_tanh + 2 * plain.u);
  EXPECT_LT(plain.of_cap, 1.001 * (plain.e_tanh + 2 * plain.u));
  Arithmetic wide;
  wide.accumulator = DType::f64;
  wide.tanh_ulps = 0.5;
  const BoundConstants in_f64(p, {wide, DType::f64});
  EXPECT_GE(in_f64.of_cap, in_f64.e_tanh + in_f64.u);  // though 1 + u is 1
  EXPECT_TRUE(plain.has_sinks);
  a.stored_weights = DType::bf16;
  a.base2 = true;
  a.key_block = 100;
  const BoundConstants blocked(p, {a, DType::f32});
  EXPECT_EQ(blocked.u_weights, 0x1p-8);
  EXPECT_LT(blocked.largest_score, plain.largest_score);
  EXPECT_GT(blocked.blocks, plain.blocks);
  EXPECT_GT(blocked.of_cap, plain.of_cap);
}

TEST(BoundConstants, ASubnormalScaleIsRoundedToAMultipleOfTheSmallest) {
  const Problem p = parse_case("seq=1 dim=4 scale=1e-42");
  Arithmetic a;
  EXPECT_GE(BoundConstants(p, {a, DType::f32}).of_product, 0x1p-149 / 1e-42);
  a.flush_to_zero = true;
  EXPECT_GE(BoundConstants(p, {a, DType::f32}).of_product, 1);  // or it is 0
  a.accumulator = DType::f64;
  EXPECT_LT(BoundConstants(p, {a, DType::f32}).of_product, 1e-14);
}

TEST(BoundConstants, SharedAmongRowsGiveTheSameBits) {
  const Problem p = parse_case(
      "dtype=f16 heads=2 seq=5x9 dim=3/2 causal align=bottom-right softcap=3 sinks dropout=0.3 "
      "out=o,lse,raw,weights seed=3");
  const CaseInputs inputs = make_inputs(p);
  const Inputs views = inputs.views();
  const Head head(p, views, 0, 1);
  for (const bool base2 : {false, true}) {
    Arithmetic a;
    a.base2 = base2;
    const BoundConstants constants(p, {a, p.call.dtype});
    for (std::int64_t i = 0; i < 5; ++i) {
      Row row;
      head.attend(i, row);
      RowBound alone, shared;
      bound_row(head, row, i, {a, p.call.dtype}, alone);
      bound_row(head, row, row_sums(head, row, i), i, constants, shared);
      EXPECT_EQ(alone.output, shared.output);
      EXPECT_EQ(alone.lse, shared.lse);
      EXPECT_EQ(alone.raw, shared.raw);
      EXPECT_EQ(alone.weights, shared.weights);
    }
  }
}

TEST(BoundConstants, SumsOfARowCoverTheKeysThatItSees) {
  const Problem p = parse_case("dtype=f64 seq=2x3 dim=1/2 causal align=top-left");
  const CaseInputs inputs = make_inputs(p);
  const Inputs views = inputs.views();
  const Head head(p, views, 0, 0);
  Row row;
  head.attend(0, row);  // the first key alone: o is v
  const RowSums sums = row_sums(head, row, 0);
  EXPECT_EQ(sums.shares, (std::vector<double>{1, 0, 0}));
  EXPECT_EQ(sums.spread, (std::vector<double>{0, 0}));
  EXPECT_EQ(sums.largest, (std::vector<double>{std::fabs(row.output[0]), std::fabs(row.output[1])}));
  EXPECT_EQ(sums.absolute, sums.largest);
  head.attend(1, row);
  EXPECT_GT(row_sums(head, row, 1).spread[0], 0);
}

}  // namespace
}  // namespace attest
