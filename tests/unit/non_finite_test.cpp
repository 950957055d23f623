// NaN and infinities in the data decide the class of a result, and no bound hides that; what may overflow in an
// arithmetic alone proves nothing.
#include "reference/softmax/non_finite.h"

#include <cmath>
#include <tuple>

#include "harness/comparison/compare.h"
#include "reference/softmax/bounds/error_bound.h"
#include "tests/faulty/around.h"
#include "tests/faulty/faulty.h"
#include "tests/unit/helpers.h"

namespace attest {
namespace {

/// One query row over given scores (q = 1, dim = 1) and values, in f32. Another q gives other scores.
struct OneRow {
  Problem problem;
  CaseInputs inputs;
  Row row;
  RowBound bound;

  OneRow(const std::string& options, const std::vector<double>& scores, const std::vector<double>& values,
         double query = 1, const Arithmetic& arithmetic = {}) {
    problem = parse_case("seq=1x" + std::to_string(scores.size()) + " dim=1 " +
                         (options.find("scale=") == std::string::npos ? "scale=1 " : "") + options);
    inputs = make_inputs(problem);
    inputs.at(TensorId::q).set(0, 0, 0, 0, query);
    for (std::size_t j = 0; j < scores.size(); ++j) {
      inputs.at(TensorId::k).set(0, 0, static_cast<std::int64_t>(j), 0, scores[j]);
      inputs.at(TensorId::v).set(0, 0, static_cast<std::int64_t>(j), 0, values[j]);
    }
    const Inputs views = inputs.views();
    const Head head(problem, views, 0, 0);
    head.attend(0, row);
    bound_row(head, row, 0, {arithmetic, problem.call.dtype}, bound);
  }
  bool passes(double got) const { return error_in_bounds(got, row.output[0], bound.output[0]) <= 1; }
};

TEST(NonFinite, AVisibleInfinityStaysOne) {
  const OneRow one("", {0, 0, 0}, {1, kInfinity, 2});
  EXPECT_TRUE(one.passes(kInfinity));
  EXPECT_FALSE(one.passes(kNaN));
  EXPECT_FALSE(one.passes(-kInfinity));
  EXPECT_FALSE(one.passes(1));
}

TEST(NonFinite, InfinitiesOfBothSignsAreNaN) {
  const OneRow one("", {0, 0}, {-kInfinity, kInfinity});
  EXPECT_TRUE(one.passes(kNaN));
  EXPECT_FALSE(one.passes(1));
}

TEST(NonFinite, OfAWeightThatUnderflowsNothingIsSaid) {
  const OneRow one("", {0, -200}, {1, kInfinity});  // exp(-200) is 0 in f32, and 0 times infinity NaN
  EXPECT_TRUE(one.passes(kInfinity));
  EXPECT_TRUE(one.passes(kNaN));
}

TEST(NonFinite, OfAFiniteScoreThatMayBecomeMinusInfinityNothingIsSaid) {
  // Whether its key is then gone, and an infinite value with it, or the value meets a weight of 0.
  const std::string line = "seq=1x2 dim=1 q.fill=constant(0) mask=add:11QK:finitemin(1) mask.dtype=";
  for (const auto& [type, base2, decided] :
       {std::tuple{"f32", false, true}, std::tuple{"f32", true, false}, std::tuple{"f64", false, false}}) {
    Computed c(line + type);
    c.inputs.at(TensorId::mask).set(0, 0, 0, 0, 0);  // one key is seen as usual
    c.inputs.at(TensorId::v).set(0, 0, 1, 0, kInfinity);
    const Inputs inputs = c.inputs.views();
    const Head head(c.problem, inputs, 0, 0);
    Row row;
    head.attend(0, row);
    ASSERT_TRUE(std::isnan(row.output[0]));
    Arithmetic a;
    a.base2 = base2;
    RowBound bound;
    bound_row(head, row, 0, {a, DType::f32}, bound);
    EXPECT_EQ(bound.output[0], decided ? 0 : kInfinity) << type << " " << base2;
  }
}

TEST(NonFinite, AnInfiniteScoreSpoilsItsRow) {
  const OneRow one("", {0, kInfinity}, {1, 2});
  EXPECT_TRUE(one.passes(kNaN));
  EXPECT_FALSE(one.passes(2));
}

TEST(NonFinite, AKeyAtMinusInfinityIsGoneAndTheRestHasItsBound) {
  const OneRow one("out=o,lse,weights", {0, -kInfinity, 0}, {1, 7, 2});
  EXPECT_TRUE(one.passes(1.5));
  EXPECT_FALSE(one.passes(1.6));
  EXPECT_LT(one.bound.lse, 1e-5);
  EXPECT_LT(one.bound.weights[1], 1e-5);
}

TEST(NonFinite, ABlockOrPartThatSeesNothingButMinusInfinityMayBeLeftOut) {
  // The second key has weight 0, and 0 times an infinity is NaN, unless its block is taken for one that sees nothing.
  const auto passes = [](std::int64_t key_block, std::int64_t parts) {
    Arithmetic a;
    a.key_block = key_block;
    a.parts = parts;
    const OneRow one("", {0, -kInfinity}, {1, kInfinity}, 1, a);
    EXPECT_TRUE(std::isnan(one.row.output[0]));
    return one.passes(1);
  };
  EXPECT_FALSE(passes(0, 0));
  EXPECT_FALSE(passes(2, 0));  // the block has another key
  EXPECT_TRUE(passes(1, 0));
  EXPECT_TRUE(passes(0, 2));  // wherever the cut is
}

TEST(NonFinite, AnInfinityMayBeNaNWhereItMeetsWhatMayBeFlushed) {
  const std::string stages = "out=o,lse,raw,biased,weights";
  Arithmetic flushing;
  flushing.flush_to_zero = true;
  for (const bool flushed : {false, true}) {
    const OneRow one(stages, {0, -kInfinity, 0}, {1, 7, 2}, 0x1p-130, flushed ? flushing : Arithmetic{});
    EXPECT_EQ(one.row.raw[1], -kInfinity);
    EXPECT_EQ(one.bound.raw[1], flushed ? kInfinity : 0);
    EXPECT_EQ(one.bound.biased[1], flushed ? kInfinity : 0);
    EXPECT_EQ(one.passes(kNaN), flushed);  // NaN takes the row, -inf leaves it
    EXPECT_EQ(one.bound.lse == kInfinity, flushed);
    EXPECT_LT(one.bound.raw[0], 1e-30);
  }
  const OneRow normal(stages, {0, -kInfinity, 0}, {1, 7, 2}, 0x1p-125, flushing);
  EXPECT_EQ(normal.bound.raw[1], 0);
  EXPECT_FALSE(normal.passes(kNaN));
}

TEST(NonFinite, AnInfiniteScoreThatMayBeNaNSpoilsItsRowAllTheSame) {
  Arithmetic flushing;
  flushing.flush_to_zero = true;
  const OneRow one("out=o,raw,weights", {0, kInfinity}, {1, 2}, 0x1p-130, flushing);
  EXPECT_EQ(one.bound.raw[1], kInfinity);
  EXPECT_TRUE(one.passes(kNaN));
  EXPECT_FALSE(one.passes(2));
  EXPECT_EQ(one.bound.weights[1], 0);
}

TEST(NonFinite, AnInfinityMayBeNaNWhereItMeetsWhatUnderflowsWhenScaled) {
  const std::vector<double> scores = {0, -kInfinity}, values = {1, 2};
  EXPECT_LT(OneRow("scale=1e-7", scores, values, 1e-36).bound.output[0], 1e-5);
  EXPECT_EQ(OneRow("scale=1e-7", scores, values, 1e-39).bound.output[0], kInfinity);
  EXPECT_EQ(OneRow("scale=1e-46", scores, values, 1).bound.output[0], kInfinity);  // the scale itself is 0 in f32
}

TEST(NonFinite, WhetherAllAtMinusInfinityIsAnEmptyRowIsNotAgreedOn) {
  const OneRow one("", {-kInfinity, -kInfinity}, {1, 2});
  EXPECT_EQ(one.bound.output[0], kInfinity);
}

TEST(NonFinite, WhatMayOverflowInTheArithmeticProvesNothing) {
  const OneRow scores("", {0x1.8p127, 0x1.8p127}, {1, 2});
  EXPECT_EQ(scores.bound.output[0], kInfinity);
  const OneRow values("", {0, 0}, {0x1.8p127, 0x1.8p127});
  EXPECT_EQ(values.bound.output[0], kInfinity);
  const OneRow overflow_in_f64("dtype=f64", {0, 0}, {0x1.8p1023, -0x1.8p1023});
  EXPECT_EQ(overflow_in_f64.bound.output[0], kInfinity);
}

TEST(NonFinite, NaNOfAMaskReachesOutputLseAndWeights) {
  const Computed one("seq=5x9 dim=3 mask=add:11QK:nan(0.2) out=o,lse,weights,biased seed=3");
  const Inputs views = one.inputs.views();
  const Head head(one.problem, views, 0, 0);
  int changed = 0;
  for (std::int64_t i = 0; i < 5; ++i) {
    const Row& row = one.row(static_cast<std::size_t>(i));
    RowBound bound;
    bound_row(head, row, i, {Arithmetic{}, DType::f32}, bound);
    if (!std::isnan(row.max)) continue;
    ++changed;
    EXPECT_GT(error_in_bounds(0.5, row.output[0], bound.output[0]), 1);
    EXPECT_GT(error_in_bounds(0.5, row.lse, bound.lse), 1);
    for (std::size_t j = 0; j < 9; ++j) {
      const bool nan = std::isnan(row.biased[j]);  // the other keys' weights may also be 0
      EXPECT_EQ(error_in_bounds(0.5, row.weights[j], bound.weights[j]) > 1, nan) << j;
    }
  }
  EXPECT_GT(changed, 0);
}

/// The correct kernel, whose infinities become NaN on the way out: 0 times infinity somewhere.
class LosesInfinities : public faulty::BackendAround {
 public:
  using BackendAround::BackendAround;
  std::unique_ptr<Plan> prepare(const Call& call) override {
    return std::make_unique<Lossy>(BackendAround::prepare(call));
  }

 private:
  struct Lossy : faulty::PlanAround {
    using PlanAround::PlanAround;
    void download(const Outputs& outputs) override {
      PlanAround::download(outputs);
      const MutableTensor& out = outputs.out();
      for (std::int64_t i = 0; i < out.shape[2]; ++i) {
        for (std::int64_t c = 0; c < out.shape[3]; ++c) {
          float& value = static_cast<float*>(out.data)[out.offset(0, 0, i, c)];
          if (std::isinf(value)) value = std::nanf("");
        }
      }
    }
  };
};

TEST(NonFinite, AKernelThatLosesAVisibleInfinityFails) {
  const BackendSet backends(faulty::faulty_backends(), {"correct"}, {1, ""});
  Backend& correct = *backends.all().front();
  LosesInfinities lossy(faulty::faulty_backends().front().make({1, ""}));
  const Case one = case_from_line("seq=9x40 dim=8 v.fill=infinite(0.01)");
  const PreparedCase prepared(one, {&correct}, 1);
  EXPECT_EQ(prepared.check(correct).status, Status::pass);
  const Verdict verdict = prepared.check(lossy);
  EXPECT_EQ(verdict.status, Status::fail);
  EXPECT_EQ(verdict.cause, (FailureCause{Cause::infinity_lost, "o"}));
}

}  // namespace
}  // namespace attest
