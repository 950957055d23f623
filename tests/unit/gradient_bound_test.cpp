// Bounds of gradients: what each statement and what was saved do to them. That right kernels keep them is shown by the
// suite `backward`.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "harness/comparison/expectation.h"
#include "reference/operators/operator.h"
#include "reference/softmax/attention.h"
#include "tests/unit/helpers.h"

namespace attest {
namespace {

struct Bounded {
  Problem problem;
  CaseInputs inputs;
  explicit Bounded(const std::string& line) : problem(parse_case(line)), inputs(make_inputs(problem)) {}

  /// Of a kernel in f32 that differs from plain loops in what `state` says.
  Bounds of(const std::function<void(Arithmetic&)>& state = [](Arithmetic&) {}) const {
    Arithmetic stated;
    state(stated);
    return expect(problem, inputs.views(), {{stated, {}}}, 1).bounds.front();
  }
};

double sum_of(const Bounds& bounds, TensorId id) {
  double sum = 0;
  for (const double bound : bounds.of(id)) sum += bound;
  return sum;
}

TEST(GradientBound, EveryStatementMovesItsTerms) {
  const Bounded one("pass=backward heads=4/2 seq=6x9 dim=5 seed=3");
  const Bounds plain = one.of();
  const auto ratio = [&](const std::function<void(Arithmetic&)>& state, TensorId id) {
    return sum_of(one.of(state), id) / sum_of(plain, id);
  };
  const auto scores = [](Arithmetic& a) { a.stored_score_gradients = DType::bf16; };
  EXPECT_GT(ratio(scores, TensorId::dq), 100);
  EXPECT_GT(ratio(scores, TensorId::dk), 100);
  EXPECT_EQ(ratio(scores, TensorId::dv), 1);
  const auto heads = [](Arithmetic& a) { a.stored_head_gradients = DType::bf16; };
  EXPECT_EQ(ratio(heads, TensorId::dq), 1);
  EXPECT_GT(ratio(heads, TensorId::dk), 100);
  EXPECT_GT(ratio(heads, TensorId::dv), 100);
  const auto weights = [](Arithmetic& a) { a.stored_weights = DType::bf16; };
  EXPECT_EQ(ratio(weights, TensorId::dq), 1);
  EXPECT_GT(ratio(weights, TensorId::dv), 100);
}

TEST(GradientBound, WhatWasSavedCountsForWhoReadsIt) {
  Bounded one("pass=backward seq=3x4 dim=2 seed=5");
  const auto recomputes = [](Arithmetic& a) { a.kept_weights = a.delta_from_weights = true; };
  const Bounds reads = one.of(), kept = one.of(recomputes);
  TensorStorage &o = one.inputs.at(TensorId::saved_o), &lse = one.inputs.at(TensorId::saved_lse);
  const double was = load(lse.memory().data(), lse.dtype(), lse.place().element(0, 0, 1, 0));
  lse.set(0, 0, 1, 0, was + 0.125);
  EXPECT_GT(sum_of(one.of(), TensorId::dv), 1000 * sum_of(reads, TensorId::dv));
  EXPECT_EQ(sum_of(one.of(recomputes), TensorId::dv), sum_of(kept, TensorId::dv));
  lse.set(0, 0, 1, 0, was);
  o.set(0, 0, 2, 1, 3);
  EXPECT_GT(sum_of(one.of(), TensorId::dq), 1000 * sum_of(reads, TensorId::dq));
  EXPECT_EQ(sum_of(one.of(), TensorId::dv), sum_of(reads, TensorId::dv)) << "dv needs no D";
  EXPECT_EQ(sum_of(one.of(recomputes), TensorId::dq), sum_of(kept, TensorId::dq));
}

TEST(GradientBound, AScoreBeyondTheRangeOfItsTypeProvesNothing) {
  const Bounded one("pass=backward seq=2x3 dim=4 scale=1 q.fill=constant(300) k.fill=constant(300) out=dq,dk,dv");
  const auto stored = [](Arithmetic& a) {
    a.stored_scores = DType::f16;
    a.score_stores = 1;
  };
  for (const TensorId id : {TensorId::dq, TensorId::dk, TensorId::dv}) {
    EXPECT_TRUE(std::isfinite(sum_of(one.of(), id))) << name_of(id);
    EXPECT_EQ(sum_of(one.of(stored), id), kInfinity) << name_of(id);
  }
}

TEST(GradientBound, OfNothingIsNothing) {
  const Bounded one("pass=backward batch=2 seq=2x3 dim=2 lengths=q:2,0/k:2,3");
  const Bounds bounds = one.of();
  for (const TensorId id : {TensorId::dk, TensorId::dv}) {
    const std::vector<double>& list = bounds.of(id);
    ASSERT_EQ(list.size(), 12u);
    for (std::size_t n = 0; n < 4; ++n) EXPECT_GT(list[n], 0) << name_of(id);
    for (std::size_t n = 4; n < 12; ++n) EXPECT_EQ(list[n], 0) << name_of(id) << ": a key that nobody sees";
  }
  for (std::size_t n = 4; n < 8; ++n) EXPECT_EQ(bounds.of(TensorId::dq)[n], 0) << "a row that sees nothing";
}

TEST(GradientBound, AnInfinityProvesNothingAndNaNIsAClass) {
  Bounded one("pass=backward seq=2x3 dim=2");
  one.inputs.at(TensorId::v).set(0, 0, 1, 0, kNaN);
  one.inputs.at(TensorId::saved_o).set(0, 0, 0, 0, kNaN);
  one.inputs.at(TensorId::saved_o).set(0, 0, 1, 0, kNaN);
  const Bounds of_nan = one.of();
  for (const double bound : of_nan.of(TensorId::dq)) EXPECT_EQ(bound, 0) << "NaN whatever the arithmetic";
  for (const double bound : of_nan.of(TensorId::dv)) EXPECT_TRUE(bound > 0 && bound < 1) << "which v does not enter";
  one.inputs.at(TensorId::v).set(0, 0, 1, 0, kInfinity);
  const Bounds of_infinity = one.of();
  for (const double bound : of_infinity.of(TensorId::dq)) EXPECT_EQ(bound, kInfinity);
}

TEST(GradientBound, AWeightOfNaNThatDropoutLeavesOutMayBeAnything) {
  Bounded one("pass=both seq=1x9 dim=1 dropout=0.5");
  one.inputs.at(TensorId::q).set(0, 0, 0, 0, kNaN);
  const Inputs inputs = one.inputs.views();
  Row row;
  Head(one.problem, inputs, 0, 0).attend(0, row);
  EXPECT_GT(std::ranges::count(row.factors, 0), 0);
  EXPECT_LT(std::ranges::count(row.factors, 0), 9);
  const Bounds bounds = one.of([](Arithmetic& a) { a.kept_weights = true; });
  for (std::size_t j = 0; j < 9; ++j) EXPECT_EQ(bounds.of(TensorId::dv)[j], row.factors[j] == 0 ? kInfinity : 0) << j;
}

/// A saved lse that was rounded to few bits may be below the scores by so much that exp overflows. Times a number of
/// 0, as dropout's factor or dP - D, that is NaN.
TEST(GradientBound, AWeightThatOverflowsProvesNothing) {
  Bounded one("pass=backward seq=1x9 dim=1 dropout=0.5 sinks=0.5 out=dq,dk,dv,dsinks do.fill=constant(0)");
  one.inputs.at(TensorId::saved_o).set(0, 0, 0, 0, 0);
  const auto keeps = [](Arithmetic& a) { a.kept_weights = true; };
  const auto of = [&](TensorId id, const std::function<void(Arithmetic&)>& state) { return sum_of(one.of(state), id); };
  const auto as_usual = [](Arithmetic&) {};
  TensorStorage& lse = one.inputs.at(TensorId::saved_lse);
  const double was = load(lse.memory().data(), lse.dtype(), lse.place().element(0, 0, 0, 0));
  lse.set(0, 0, 0, 0, was - 60);
  for (const TensorId id : {TensorId::dq, TensorId::dk, TensorId::dv, TensorId::dsinks})
    EXPECT_LT(of(id, as_usual), 1) << name_of(id) << ": e^60 is a number";
  lse.set(0, 0, 0, 0, was - 95);
  for (const TensorId id : {TensorId::dq, TensorId::dk, TensorId::dv, TensorId::dsinks})
    EXPECT_EQ(of(id, as_usual), kInfinity) << name_of(id);
  const Bounds bounds = one.of();
  for (const double bound : bounds.of(TensorId::dv)) EXPECT_EQ(bound, kInfinity) << "dropped or not";
  for (const TensorId id : {TensorId::dq, TensorId::dk, TensorId::dv})
    EXPECT_LT(of(id, keeps), 1) << name_of(id) << ": where weights are kept";
}

}  // namespace
}  // namespace attest
