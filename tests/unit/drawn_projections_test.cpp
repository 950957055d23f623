// Embeddings and projections, drawn where a case has neither.
#include "harness/trace/drawn_projections.h"

#include <gtest/gtest.h>

#include <cmath>

#include "harness/base/user_error.h"
#include "reference/options/case_line.h"

namespace attest {
namespace {

TEST(DrawnProjections, AreAFunctionOfTheirPlaceAndKeepTheVariance) {
  const Matrix m = drawn_matrix(5, 64, 100), again = drawn_matrix(5, 64, 100), other = drawn_matrix(6, 64, 100);
  EXPECT_EQ(m.values, again.values);
  EXPECT_NE(m.values, other.values);
  double sum = 0, squares = 0;
  for (const double value : m.values) {
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(sum / 6400, 0, 0.01);
  EXPECT_NEAR(squares / 6400, 1.0 / 64, 0.1 / 64);  // x * w has the variance of x
}

TEST(DrawnProjections, InputsAreProducts) {
  const Problem p = parse_case("dtype=f64 batch=2 heads=4/2 seq=3 dim=5/2");
  const DrawnProjections drawn = draw_projections(p, 7);
  ASSERT_EQ(drawn.embeddings.size(), 2u);
  EXPECT_EQ(drawn.w_q.columns, 4 * 5);
  EXPECT_EQ(drawn.w_k.columns, 2 * 5);
  EXPECT_EQ(drawn.w_v.columns, 2 * 2);
  const Matrix v = project(drawn.embeddings[1], drawn.w_v);
  const ConstTensor view = drawn.inputs.at(TensorId::v).view();
  for (std::int64_t l = 0; l < 3; ++l) {
    EXPECT_EQ(load(view.data, view.dtype, view.offset(1, 1, l, 1)), v.at(l, 2 + 1));  // heads lie side by side
  }
}

TEST(DrawnProjections, NeedSelfAttentionOverDenseTensors) {
  for (const char* line : {"seq=3x4 dim=4", "seq=4 dim=4 past=2 causal", "batch=2 seq=4 dim=4 lengths=4,2 paged=2",
                           "batch=2 seq=4 dim=4 lengths=q:4,2/k:4,2 layout=thd"}) {
    EXPECT_THROW(draw_projections(parse_case(line), 8), UserError) << line;
  }
  EXPECT_THROW(draw_projections(parse_case("seq=4 dim=4"), 0), UserError);
  EXPECT_THROW(draw_projections(parse_case("seq=4 dim=4"), 1 << 20), UserError);
}

}  // namespace
}  // namespace attest
