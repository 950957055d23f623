#include "harness/speed/machine/roof.h"

#include <gtest/gtest.h>

#include "harness/base/interrupted.h"
#include "harness/base/stopwatch.h"

namespace attest {
namespace {

TEST(Roof, OfOneThreadIsPositive) {
  const Roof roof = measure_roof(1);
  EXPECT_GT(roof.fma_gflops_f32, 1);
  EXPECT_GT(roof.read_gbps, 0.1);
}

TEST(Roof, OfMoreThreadsThanProcessorsIsThatOfTheProcessors) {
  const Stopwatch watch;
  EXPECT_GT(measure_fma_again(1024, false), 1);
  // 25 rounds of a millisecond or two; with a thousand threads that take turns it would be a minute.
  EXPECT_LT(watch.seconds(), 10);
}

TEST(Roof, EndsEarlyWhenInterrupted) {
  const Stopwatch watch;
  interrupted = true;
  const Roof roof = measure_roof(1);
  interrupted = false;
  EXPECT_GT(roof.fma_gflops_f32, 0);
  const double in_full = [] {
    const Stopwatch whole;
    measure_roof(1);
    return whole.seconds();
  }();
  EXPECT_LT(watch.seconds() - in_full, in_full);
}

}  // namespace
}  // namespace attest
