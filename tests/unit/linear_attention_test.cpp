// The growth of the bound of linear attention.
#include "reference/linear/linear_attention.h"

#include <cmath>

#include "reference/operators/head_reference.h"
#include "tests/unit/helpers.h"

namespace attest {
namespace {

/// Magnitudes alone double with every token under the delta rule; the norm does not.
TEST(LinearBound, OfTheDeltaRuleStaysUseful) {
  const Problem p = parse_case("op=delta seq=512 dim=32");
  const CaseInputs inputs = make_inputs(p);
  const Inputs views = inputs.views();
  const auto head = make_head_reference(p, views, 0, 0, {{Arithmetic{}, DType::f32}});
  Row row;
  RowBound bound;
  head->attend(511, row);
  head->bound(0, row, bound);
  for (double b : bound.output) {
    EXPECT_GT(b, 0);
    EXPECT_LT(b, 0.02);
  }
}

TEST(LinearBound, GrowsWithTheArithmetic) {
  const Problem p = parse_case("op=gated_delta seq=16 dim=8");
  const CaseInputs inputs = make_inputs(p);
  const Inputs views = inputs.views();
  const auto bound_of = [&](const Arithmetic& a, DType stored) {
    const std::vector<Producer> producers = {{a, stored}};
    const auto head = make_head_reference(p, views, 0, 0, producers);
    Row row;
    RowBound bound;
    head->attend(15, row);
    head->bound(0, row, bound);
    return bound.output[0];
  };
  Arithmetic a;
  const double plain = bound_of(a, DType::f32);
  EXPECT_GT(bound_of(a, DType::bf16), plain);
  a.exp_ulps = 100;
  EXPECT_GT(bound_of(a, DType::f32), plain);
  a.exp_ulps = 2;
  a.accumulator = DType::f64;
  EXPECT_LT(bound_of(a, DType::f64), plain * 1e-6);
}

TEST(LinearBound, OverflowProvesNothing) {
  const Problem p = parse_case("op=linear seq=16 dim=8 fill=constant(1e25)");
  const CaseInputs inputs = make_inputs(p);
  const Inputs views = inputs.views();
  const std::vector<Producer> producers = {{Arithmetic{}, DType::f32}};
  const auto head = make_head_reference(p, views, 0, 0, producers);
  Row row;
  RowBound bound;
  head->attend(0, row);
  head->bound(0, row, bound);
  EXPECT_EQ(bound.output[0], kInfinity);
}

}  // namespace
}  // namespace attest
