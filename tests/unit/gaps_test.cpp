// What a device gets of tensors that are mostly gaps.
#ifdef ATTEST_HAS_OPENCL
#include "backends/support/opencl/gaps.h"

#include <gtest/gtest.h>

#include "harness/cases/inputs.h"
#include "reference/options/case_line.h"

namespace attest {
namespace {

TEST(Gaps, OrdinaryStridesStayAsTheyAre) {
  const Problem p = parse_case("heads=2 seq=3 dim=4 q.strides=0,24,8,2 mask=bool:11QK:all");
  const CaseInputs made = make_inputs(p);
  const support::WithoutGaps same(made.views());
  EXPECT_EQ(same.inputs().q().data, made.views().q().data);
  EXPECT_EQ(same.inputs().q().strides, made.views().q().strides);
  EXPECT_EQ(same.inputs().mask()->data, made.views().mask()->data);
  EXPECT_EQ(support::device_bytes(place_of(p, TensorId::q), 4), 4 * (24 + 16 + 6 + 1));
}

TEST(Gaps, WideOnesArePackedElementByElement) {
  const Problem p = parse_case(
      "heads=2 seq=3 dim=4 k.strides=0,9000000000,3000000000,1 mask=bool:1HQ1:random(0.5) "
      "mask.strides=0,90000000,30000000,0");
  const CaseInputs made = make_inputs(p);
  const Inputs given = made.views();
  const support::WithoutGaps dense(given);
  const ConstTensor &from = given.k(), &to = dense.inputs().k();
  EXPECT_EQ(span_bytes(to), 2 * 3 * 4 * 4u);
  EXPECT_EQ(support::device_bytes(place_of(p, TensorId::k), 4), 2 * 3 * 4 * 4);
  const ConstTensor &mask = *given.mask(), &packed = *dense.inputs().mask();
  EXPECT_EQ(span_bytes(packed), 6u);
  for (std::int64_t h = 0; h < 2; ++h) {
    for (std::int64_t l = 0; l < 3; ++l) {
      for (std::int64_t d = 0; d < 4; ++d) {
        EXPECT_EQ(load(to.data, DType::f32, to.offset(0, h, l, d)),
                  load(from.data, DType::f32, from.offset(0, h, l, d)));
      }
      const auto byte = [&](const ConstTensor& m) { return static_cast<const char*>(m.data)[m.offset(0, h, l, 2)]; };
      EXPECT_EQ(byte(mask), byte(packed));
    }
  }
}

}  // namespace
}  // namespace attest
#endif
