// Errors in units in the last place, and which elements have one.
#include "harness/comparison/ulps.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "harness/cases/inputs.h"
#include "reference/base/half.h"
#include "reference/options/case_line.h"

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

/// A single query and key of a case with three columns: o is v, whatever the rounding of the weight.
class UlpErrorsOfThree : public testing::Test {
 protected:
  std::optional<UlpErrors> errors() { return ulp_errors(problem, expectation, expectation.bounds.front(), outputs); }
  void set(int column, double value) { store(outputs.views().out().data, DType::f32, column, value); }

  Problem problem = parse_case("seq=1 dim=1/3 out=o,lse");
  CaseInputs inputs = make_inputs(problem);
  Expectation expectation = [&] {
    Expectation e = expect(problem, inputs.views(), {{Arithmetic{}, DType::f32}}, 1);
    e.of(TensorId::out) = {1, -4, 0};
    return e;
  }();
  GuardedOutputs outputs{problem};
};

TEST_F(UlpErrorsOfThree, HaveAMedianAndALargest) {
  set(0, 1 + 0x1p-22);          // two units of 2^-23
  set(1, -4);                   // none
  set(2, 5 * 0x1p-149);         // five of the smallest
  const auto found = errors();  // lse, unwritten, is not among them
  ASSERT_TRUE(found);
  EXPECT_EQ(found->elements, 3);
  EXPECT_EQ(found->median, 2);
  EXPECT_EQ(found->largest, 5);
}

TEST_F(UlpErrorsOfThree, LeaveOutWhatTheClassDecides) {
  for (int column = 0; column < 3; ++column) set(column, 7);
  expectation.of(TensorId::out)[0] = kNaN;
  expectation.bounds.front().of(TensorId::out)[1] = kInfinity;
  set(2, kInfinity);
  EXPECT_FALSE(errors());
  set(2, 0);
  ASSERT_TRUE(errors());
  EXPECT_EQ(errors()->elements, 1);
  EXPECT_EQ(errors()->largest, 0);
}

TEST(Ulps, AreToldAsMedianAndLargest) { EXPECT_EQ(text_of(UlpErrors{0.5, 1.25, 3}), "0.5 (1.25)"); }

TEST(Ulps, OfACallWithoutAnOutputAreNone) {
  const Problem p = parse_case("seq=2 dim=1 out=lse");
  const CaseInputs inputs = make_inputs(p);
  const Expectation e = expect(p, inputs.views(), {{Arithmetic{}, DType::f32}}, 1);
  EXPECT_FALSE(ulp_errors(p, e, e.bounds.front(), GuardedOutputs(p)));
}

}  // namespace
}  // namespace attest
