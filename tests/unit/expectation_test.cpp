// Which rows are checked, and what they must give.
#include "harness/comparison/expectation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "harness/cases/inputs.h"
#include "reference/case_line.h"

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
  EXPECT_EQ(rows.back(), (RowIndex{0 + big.batch - 1, 1, 4095}));
}

TEST(Expectation, BoundsAreNumbersAtTheEndOfTheRange) {
  // A mask of doubles whose lowest number is added to scores in float32.
  const Problem p = parse_case("seq=2 dim=1 mask=add:1111:finitemin(1) mask.dtype=f64 out=o,lse");
  const CaseInputs inputs = make_inputs(p);
  const Expectation e = expect(p, inputs.views(), {{plain_f32(), p.dtype}}, 1);
  for (const Bounds* bounds : {&std::as_const(e.own), &e.bounds[0]}) {
    for (double bound : bounds->lse) EXPECT_FALSE(std::isnan(bound));
    for (double bound : bounds->out) EXPECT_FALSE(std::isnan(bound));
  }
}

}  // namespace
}  // namespace attest
