// The maximum and the sum of a row as results: against what they are known to be, and against the logsumexp.
#include <gtest/gtest.h>

#include <cmath>

#include "harness/comparison/expectation.h"
#include "tests/unit/helpers.h"

namespace attest {
namespace {

Expectation expected(const std::string& line, const Arithmetic& arithmetic = {}) {
  const Problem problem = parse_case(line);
  const CaseInputs inputs = make_inputs(problem);
  return expect(problem, inputs.views(), {{arithmetic, {}}}, 1);
}

TEST(RowStatistics, OfEqualScoresAreTheScoreAndTheCount) {
  const Expectation e =
      expected("seq=2x5 dim=4 causal align=bottom-right scale=0.5 q.fill=constant(2) k.fill=constant(3) out=max,sum");
  EXPECT_EQ(e.of(TensorId::row_max), (std::vector<double>{12, 12}));
  EXPECT_EQ(e.of(TensorId::row_sum), (std::vector<double>{4, 5}));
}

TEST(RowStatistics, OfNothingAndOfASinkAlone) {
  const Expectation nothing = expected("heads=2 seq=1x3 dim=2 lengths=0 out=max,sum");
  EXPECT_EQ(nothing.of(TensorId::row_max), (std::vector<double>{-kInfinity, -kInfinity}));
  EXPECT_EQ(nothing.of(TensorId::row_sum), (std::vector<double>{0, 0}));
  for (const TensorId id : {TensorId::row_max, TensorId::row_sum})
    EXPECT_EQ(nothing.bounds.front().of(id), (std::vector<double>{0, 0}));
  const Expectation sink = expected("heads=2 seq=1x3 dim=2 lengths=0 sinks=-2.5,-inf out=max,sum");
  EXPECT_EQ(sink.of(TensorId::row_max), (std::vector<double>{-2.5, -kInfinity}));
  EXPECT_EQ(sink.of(TensorId::row_sum), (std::vector<double>{1, 0}));
}

TEST(RowStatistics, MakeTheLogsumexp) {
  for (const char* line :
       {"heads=4/2 seq=9x33 dim=8 align=top-left sinks window=7:2 out=lse,max,sum",
        "dtype=f64 seq=9x33 dim=8 align=bottom-right fill=spread(300) softcap=20 alibi out=lse,max,sum",
        "dtype=bf16 batch=2 seq=9x33 dim=8 mask=add:B1QK:wide lengths=33,5 out=lse,max,sum"}) {
    const Expectation e = expected(line);
    for (std::size_t r = 0; r < e.rows.size(); ++r) {
      const double max = e.of(TensorId::row_max)[r], sum = e.of(TensorId::row_sum)[r];
      EXPECT_NEAR(max + std::log(sum), e.of(TensorId::lse)[r], 1e-13 * (1 + std::fabs(max))) << line;
      EXPECT_GE(sum, 1) << line;
    }
  }
}

/// Statements of steps widen the bound of the sum; the maximum is a score, whatever the steps.
TEST(RowStatistics, BoundsFollowTheStatements) {
  const char* line = "seq=4x64 dim=8 out=max,sum";
  const auto bounds = [&](const Arithmetic& a) {
    const Bounds found = expected(line, a).bounds.front();
    return std::pair(found.of(TensorId::row_max)[3], found.of(TensorId::row_sum)[3]);
  };
  const auto plain = bounds({});
  Arithmetic steps;
  steps.key_block = 4;
  EXPECT_EQ(bounds(steps).first, plain.first);
  EXPECT_GT(bounds(steps).second, 1.2 * plain.second);
  Arithmetic stored;
  stored.stored_scores = DType::bf16;
  stored.score_stores = 1;
  EXPECT_GT(bounds(stored).first, 100 * plain.first);
  EXPECT_GT(bounds(stored).second, 100 * plain.second);
  Arithmetic base2;
  base2.base2 = true;
  EXPECT_GT(bounds(base2).first, plain.first);
}

/// A mask in float64 is rounded before an accumulator in float32 adds it: the largest of equal scores is off by both.
TEST(RowStatistics, BoundsKnowAMaskWiderThanTheAccumulator) {
  const auto bound = [](const char* type) {
    const std::string line = "seq=1x8 dim=1 q.fill=constant(0) mask=add:1111:normal mask.dtype=";
    return expected(line + type + " out=max").bounds.front().of(TensorId::row_max)[0];
  };
  EXPECT_GT(bound("f64"), 1.5 * bound("f32"));
}

/// A finite number of float64 that is -inf in the accumulator: a kernel may take the key with NaN for a hidden one.
TEST(RowStatistics, AMaskBeyondTheAccumulatorMayHideNaN) {
  const auto bound = [](const char* type) {
    const std::string line = "seq=1 dim=1 mask=add:1111:finitemin(0.999) fill=constant(1) poison=visible:k mask.dtype=";
    return expected(line + type).bounds.front().of(TensorId::out)[0];
  };
  EXPECT_EQ(bound("f64"), kInfinity);
  EXPECT_EQ(bound("f32"), 0);
}

}  // namespace
}  // namespace attest
