#include "harness/speed/roof.h"

#include <gtest/gtest.h>

namespace attest {
namespace {

TEST(Roof, OfOneThreadIsPositive) {
  const Roof roof = measure_roof(1);
  EXPECT_GT(roof.fma_gflops_f32, 1);
  EXPECT_GT(roof.read_gbps, 0.1);
}

}  // namespace
}  // namespace attest
