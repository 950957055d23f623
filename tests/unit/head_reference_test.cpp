// Rows of a head, whichever operator it is.
#include "reference/operators/head_reference.h"

#include <gtest/gtest.h>

#include <cmath>

#include "harness/cases/inputs.h"
#include "reference/operators/operator_tensors.h"
#include "reference/options/case_line.h"

namespace attest {
namespace {

Producer producer(DType accumulator) {
  Arithmetic arithmetic;
  arithmetic.accumulator = arithmetic.stored_weights = accumulator;
  return {arithmetic, DType::f64};
}

TEST(HeadReference, RowsOfSoftmaxAreThoseOfAttention) {
  const Problem p = parse_case("dtype=f64 batch=2 heads=4/2 seq=3x5 dim=4 causal align=bottom-right softcap=3");
  const CaseInputs inputs = make_inputs(p);
  const std::vector<Row> rows = reference_rows(p, inputs.views());
  const Attention expected = attention(p, inputs.views());
  ASSERT_EQ(rows.size(), 2u * 4 * 3);
  for (std::size_t n = 0; n < rows.size(); ++n) {
    EXPECT_EQ(rows[n].output, expected.rows[n].output);
    EXPECT_EQ(rows[n].lse, expected.rows[n].lse);
  }
}

TEST(HeadReference, EveryOperatorHasBoundsForEachProducer) {
  for (const Op op : values_of<Op>()) {
    const Problem p = parse_case("op=" + std::string(name_of(op)) + " dtype=f64 heads=2/1 seq=6 dim=3/2");
    const CaseInputs inputs = make_inputs(p);
    const Inputs views = inputs.views();
    const auto head = make_head_reference(p, views, 0, 1, {producer(DType::f32), producer(DType::f64)});
    Row row;
    RowBound coarse, fine;
    for (std::int64_t i = 0; i < 6; ++i) {
      head->attend(i, row);
      head->bound(0, row, coarse);
      head->bound(1, row, fine);
      ASSERT_EQ(row.output.size(), 2u);
      ASSERT_EQ(coarse.output.size(), 2u);
      for (std::size_t c = 0; c < 2; ++c) {
        EXPECT_GT(coarse.output[c], fine.output[c]) << name_of(op);
        EXPECT_GT(fine.output[c], 0) << name_of(op);
      }
      const std::int64_t columns[] = {1};
      const auto deviations = head->deviations(row, columns);
      ASSERT_EQ(deviations.size(), 2u);  // a list for each producer
      EXPECT_EQ(deviations[0].size(), 1u);
      EXPECT_EQ(row.weights.empty(), !p.has_scores());
    }
  }
}

TEST(HeadReference, AResultMayBeRoundedOtherwise) {
  Producer plain = producer(DType::f32), other = plain;
  Arithmetic of_lse = plain.arithmetic;
  of_lse.log_ulps = 1000;
  other.arithmetic.of_results = {{TensorId::lse, of_lse}};
  const Problem p = parse_case("seq=3x9 dim=4 out=o,lse,weights");
  const CaseInputs inputs = make_inputs(p);
  const Inputs views = inputs.views();
  const auto head = make_head_reference(p, views, 0, 0, {plain, other});
  Row row;
  RowBound usual, own;
  for (std::int64_t i = 0; i < 3; ++i) {
    head->attend(i, row);
    head->bound(0, row, usual);
    head->bound(1, row, own);
    EXPECT_GT(own.lse, 50 * usual.lse);
    EXPECT_EQ(own.output, usual.output);
    EXPECT_EQ(own.weights, usual.weights);
  }
  const Problem linear = parse_case("op=linear seq=6 dim=2 out=o,present");
  const CaseInputs tokens = make_inputs(linear);
  Arithmetic of_state = plain.arithmetic;
  of_state.accumulator = DType::f64;
  other.arithmetic.of_results = {{TensorId::present_state, of_state}};
  const PresentValues state = expect_present(linear, tokens.views(), TensorId::present_state, {plain, other});
  for (std::size_t n = 0; n < state.values.size(); ++n) EXPECT_LT(state.bounds[1][n], state.bounds[0][n] / 1000);
}

TEST(HeadReference, LinearAttentionClaimsNoDeviation) {
  const Problem p = parse_case("op=linear seq=4 dim=2");
  const CaseInputs inputs = make_inputs(p);
  const Inputs views = inputs.views();
  const auto head = make_head_reference(p, views, 0, 0, {producer(DType::f32)});
  Row row;
  head->attend(0, row);
  const std::int64_t columns[] = {0, 1};
  EXPECT_EQ(head->deviations(row, columns).at(0), (std::vector<double>{kInfinity, kInfinity}));
}

}  // namespace
}  // namespace attest
