// How accurate a result is, in numbers that don't depend on its bounds.
#include "harness/comparison/accuracy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "reference/base/half.h"

namespace attest {
namespace {

TEST(Ulps, AreTheDistanceToTheNextNumber) {
  for (const double value : {1.0, 1.5, -2.0, 3.0, 0x1p-100, 1e30, 0x1p-126}) {
    const double magnitude = std::fabs(value);
    const auto as_float = static_cast<float>(magnitude);
    const float next = std::nextafter(as_float, std::numeric_limits<float>::infinity());
    EXPECT_EQ(unit_in_last_place(value, DType::f32), static_cast<double>(next) - static_cast<double>(as_float));
    EXPECT_EQ(unit_in_last_place(value, DType::f64), std::nextafter(magnitude, kInfinity) - magnitude);
  }
  for (const int number : {0x0400, 0x3c00, 0x3fff, 0x7bfe}) {
    const auto bits = static_cast<std::uint16_t>(number);
    const auto next = static_cast<std::uint16_t>(bits + 1);
    EXPECT_EQ(unit_in_last_place(static_cast<double>(f16_to_float(bits)), DType::f16),
              static_cast<double>(f16_to_float(next)) - static_cast<double>(f16_to_float(bits)));
    EXPECT_EQ(unit_in_last_place(static_cast<double>(bf16_to_float(bits)), DType::bf16),
              static_cast<double>(bf16_to_float(next)) - static_cast<double>(bf16_to_float(bits)));
  }
}

TEST(Ulps, OfSubnormalsAndZerosAreThoseOfTheSmallestNormalNumber) {
  EXPECT_EQ(unit_in_last_place(0, DType::f32), 0x1p-149);
  EXPECT_EQ(unit_in_last_place(-0x1p-140, DType::f32), 0x1p-149);
  EXPECT_EQ(unit_in_last_place(0, DType::f64), 0x1p-1074);
  EXPECT_EQ(unit_in_last_place(0x1p-20, DType::f16), 0x1p-24);
  EXPECT_EQ(unit_in_last_place(0, DType::bf16), 0x1p-133);
}

TEST(Ulps, BeyondTheRangeAreThoseOfTheLargestNumber) {
  EXPECT_EQ(unit_in_last_place(1e9, DType::f16), 0x1p5);
  EXPECT_EQ(unit_in_last_place(1e300, DType::f32), 0x1p104);
}

TEST(Spread, IsTheMedianTheTailAndTheLargest) {
  SpreadCounter counter;
  EXPECT_EQ(counter.spread(), Spread());
  for (int n = 1; n <= 1000; ++n) counter.add(n);
  const Spread spread = counter.spread();
  EXPECT_LE(spread.median, 500);
  EXPECT_GT(spread.median, 500 * 15.0 / 16);
  EXPECT_LE(spread.p99, 990);
  EXPECT_GT(spread.p99, 990 * 15.0 / 16);
  EXPECT_EQ(spread.largest, 1000);
}

TEST(Spread, HasZerosAndSizesBeyondItsScale) {
  SpreadCounter counter;
  for (int n = 0; n < 60; ++n) counter.add(0);
  for (int n = 0; n < 39; ++n) counter.add(3);
  counter.add(kInfinity);
  EXPECT_EQ(counter.spread(), (Spread{0, 3, kInfinity}));
  SpreadCounter huge;
  huge.add(1e30);
  EXPECT_EQ(huge.spread(), (Spread{1e30, 1e30, 1e30}));
}

TEST(Accuracy, CountsUnitsAndRelativeErrors) {
  AccuracyCounter counter(DType::f32);
  counter.add(1 + 0x1p-22, 1, 1e-3);       // two units of 2^-23
  counter.add(-4, -4, 1e-3);               // none
  counter.add(5 * 0x1p-149, 0, 0x1p-120);  // five of the smallest, and no relative error
  const Accuracy found = counter.accuracy("o");
  EXPECT_EQ(found.compared, 3);
  EXPECT_EQ(found.elements, 3);
  EXPECT_EQ(found.unproven, 1);
  EXPECT_EQ(found.ulps.median, 2);
  EXPECT_EQ(found.ulps.largest, 5);
  EXPECT_EQ(found.relative, (Spread{0, 0x1p-22, 0x1p-22}));
  EXPECT_DOUBLE_EQ(found.normwise, 0x1p-22 / std::sqrt(17));
  EXPECT_FALSE(found.proves_little());
  EXPECT_EQ(little_proved({found}), "");
}

TEST(Accuracy, LeavesOutWhatTheClassDecides) {
  AccuracyCounter counter(DType::f32);
  counter.add(7, kNaN, 0);
  counter.add(kInfinity, kInfinity, 0);
  counter.add(kNaN, 1, 1);
  counter.add(7, 1, kInfinity);
  const Accuracy found = counter.accuracy("o");
  EXPECT_EQ(found.compared, 4);
  EXPECT_EQ(found.elements, 0);
  EXPECT_EQ(found.unproven, 2);
  EXPECT_FALSE(ulps_of_output({found}));
}

/// One result that proves nothing doesn't hide behind another.
TEST(Accuracy, OfEachResultSaysWhereLittleIsProved) {
  AccuracyCounter fine(DType::f32), coarse(DType::f32);
  for (int n = 0; n < 100; ++n) fine.add(1, 1, 1e-6);
  for (int n = 0; n < 3; ++n) coarse.add(0.1, 0.83, n == 0 ? 1e-6 : 0.9);
  const std::vector<Accuracy> results = {fine.accuracy("o"), coarse.accuracy("lse")};
  EXPECT_EQ(little_proved(results), "proves little: most bounds are as large as the values, of lse");
  ASSERT_TRUE(ulps_of_output(results));
  EXPECT_EQ(ulps_of_output(results)->largest, 0);
}

/// A zero that must be met exactly is proved; a row that may be anything near it isn't.
TEST(Accuracy, OfZerosIsProvedWithoutABound) {
  AccuracyCounter exact(DType::f32), wide(DType::f32);
  exact.add(0, 0, 0);
  wide.add(0, 0, 1e-9);
  EXPECT_FALSE(exact.accuracy("o").proves_little());
  EXPECT_TRUE(wide.accuracy("o").proves_little());
}

TEST(Accuracy, IsToldAsMedianAndLargest) { EXPECT_EQ(text_of(Spread{0.5, 1, 1.25}), "0.5 (1.25)"); }

}  // namespace
}  // namespace attest
