// The bound of a gradient's element, term by term.
#include "reference/softmax/bounds/gradient_terms.h"

#include "harness/comparison/expectation.h"
#include "tests/unit/helpers.h"

namespace attest {
namespace {

/// Terms of every element of a result add up to its bound.
void expect_sums(const std::string& line, const Arithmetic& arithmetic) {
  const Problem p = parse_case(line);
  const CaseInputs inputs = make_inputs(p);
  const Inputs views = inputs.views();
  const Producer producer{arithmetic, {}};
  const Expectation e = expect(p, views, {producer}, 1);
  for (const TensorId id : {TensorId::dq, TensorId::dk, TensorId::dv, TensorId::dmask}) {
    std::size_t at = 0;
    if (!has_tensor(p, id)) continue;
    each_index(seen_shape(p, id), [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
      const double bound = e.bounds[0].of(id)[at++];
      const GradientTerms t = terms_of_gradient(p, views, producer, id, {b, h, l, d});
      const GradientSumTerms& s = t.sums;
      const double sum = s.errors + s.rounding + s.parts + s.underflow + s.storage;
      ASSERT_NEAR(sum / bound, 1, 1e-6) << line << " " << name_of(id) << " " << l << " " << d;
      ASSERT_NEAR(t.scores.sum() / s.errors, 1, 1e-6) << line << " " << name_of(id);
      double of_pairs = 0;
      for (const GradientPair& pair : t.pairs) of_pairs += std::fabs(pair.error * pair.y);
      const double scale = id == TensorId::dq || id == TensorId::dk ? p.call.scale_value() : 1;
      ASSERT_NEAR(scale * of_pairs / s.errors, 1, 1e-6) << line << " " << name_of(id);
    });
  }
}

TEST(GradientTerms, AddUpToTheBound) {
  Arithmetic narrow;
  narrow.stored_score_gradients = narrow.stored_head_gradients = DType::bf16;
  narrow.stored_weights = DType::f16;
  Arithmetic kept;
  kept.kept_weights = kept.delta_from_weights = true;
  for (const Arithmetic& arithmetic : {Arithmetic(), narrow, kept}) {
    expect_sums("pass=backward seq=5x7 dim=4/3", arithmetic);
    expect_sums("pass=backward batch=2 heads=4/2 seq=3x5 dim=2 softcap=2 dropout=0.4 mask=add:11QK out=dq,dk,dv,dmask",
                arithmetic);
    expect_sums("pass=both dtype=bf16 heads=2 seq=4 dim=3 mask=add:1H1K dlse out=o,dq,dk,dv,dmask", arithmetic);
  }
}

TEST(GradientTerms, PairsAreThoseOfTheElement) {
  const Problem p = parse_case("pass=backward batch=2 heads=4/2 seq=3x5 dim=2 causal align=top-left");
  const CaseInputs inputs = make_inputs(p);
  const auto pairs = [&](TensorId id, const Index4& at) {
    return terms_of_gradient(p, inputs.views(), {}, id, at).pairs;
  };
  EXPECT_EQ(pairs(TensorId::dq, {1, 3, 1, 0}).size(), 2u);  // keys 0 and 1
  EXPECT_EQ(pairs(TensorId::dk, {0, 1, 1, 0}).size(), 4u);  // queries 1 and 2 of both heads of the group
  EXPECT_TRUE(pairs(TensorId::dv, {0, 1, 4, 0}).empty());   // nobody sees it
  for (const GradientPair& pair : pairs(TensorId::dk, {1, 1, 2, 0})) {
    EXPECT_EQ(pair.b, 1);
    EXPECT_GE(pair.h, 2);
    EXPECT_EQ(pair.j, 2);
  }
}

}  // namespace
}  // namespace attest
