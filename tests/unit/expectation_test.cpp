// Which rows are checked, and what they must give.
#include "harness/comparison/expectation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "harness/cases/inputs.h"
#include "reference/options/case_line.h"

namespace attest {
namespace {

Arithmetic plain_f32() {
  Arithmetic a;
  a.exp_ulps = a.log_ulps = 1;
  return a;
}

TEST(RowsToCheck, AllOrASampleWithTheEnds) {
  EXPECT_EQ(rows_to_check(parse_case("batch=2 heads=3 seq=5 dim=4"), 1e9).size(), 30u);
  const Problem big = parse_case("heads=2 seq=4096 dim=64");
  const auto rows = rows_to_check(big, 1e7);
  EXPECT_EQ(rows, rows_to_check(big, 1e7));
  EXPECT_LT(rows.size(), 100u);
  EXPECT_EQ(rows.front(), (RowIndex{0, 0, 0}));
  EXPECT_EQ(rows.back(), (RowIndex{0 + big.call.batch - 1, 1, 4095}));
}

/// Rows of one key and one feature: there are millions of them before there is much to multiply.
TEST(RowsToCheck, AreNotAllOfMillionsThatCostNothingToMultiply) {
  const Problem p = parse_case("batch=65538 heads=129 seq=2x1 dim=1");
  const auto rows = rows_to_check(p, kRowBudget);
  EXPECT_LE(static_cast<double>(rows.size()) * kLeastRowCost, 1.001 * kRowBudget);
  EXPECT_GT(static_cast<double>(rows.size()) * kLeastRowCost, 0.9 * kRowBudget);
  const auto has = [&](const RowIndex& row) { return std::binary_search(rows.begin(), rows.end(), row); };
  // At the ends of 16 bits, and of a warp's multiples.
  for (std::int64_t b : {0, 1, 255, 256, 257, 65535, 65536, 65537}) EXPECT_TRUE(has({b, 128, 1})) << b;
  for (std::int64_t h : {0, 31, 32, 33, 63, 64, 127, 128}) EXPECT_TRUE(has({65537, h, 1})) << h;
}

TEST(RowsToCheck, AreThereInSequencesOfDifferentLength) {
  const Problem p = parse_case("batch=4 seq=3000 dim=64 lengths=q:0,3000,7,0/k:5,3000,9,2 layout=thd");
  for (const RowIndex& row : rows_to_check(p, 1e8)) {
    EXPECT_GE(row.i, 0);
    EXPECT_LT(row.i, p.call.stored_queries(row.b));
  }
}

TEST(Expectation, BoundsAreNumbersAtTheEndOfTheRange) {
  // A mask of doubles whose lowest number is added to scores in float32.
  const Problem p = parse_case("seq=2 dim=1 mask=add:1111:finitemin(1) mask.dtype=f64 out=o,lse");
  const CaseInputs inputs = make_inputs(p);
  const Expectation e = expect(p, inputs.views(), {{plain_f32(), {}}}, 1);
  for (const Bounds* bounds : {&std::as_const(e.own), &e.bounds[0]}) {
    for (double bound : bounds->of(TensorId::lse)) EXPECT_FALSE(std::isnan(bound));
    for (double bound : bounds->of(TensorId::out)) EXPECT_FALSE(std::isnan(bound));
  }
}

/// With weights up to exp(40), which f16 holds as infinities, a sum of the stored ones is one, too.
TEST(Expectation, ASumOfStoredWeightsThatMayOverflowProvesNothing) {
  const Problem p = parse_case("seq=2x8 dim=4 out=o,lse");
  const CaseInputs inputs = make_inputs(p);
  Arithmetic lagging = plain_f32();
  lagging.key_block = 2;
  lagging.lazy_threshold = 40;
  lagging.stored_weights = DType::f16;
  for (const bool of_stored : {false, true}) {
    lagging.sum_of_stored = of_stored;
    const Expectation e = expect(p, inputs.views(), {{lagging, {}}}, 1);
    for (double bound : e.bounds[0].of(TensorId::lse)) EXPECT_EQ(std::isinf(bound), of_stored);
  }
}

}  // namespace
}  // namespace attest
