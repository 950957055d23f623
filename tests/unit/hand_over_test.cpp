// What waking another thread costs.
#include "harness/speed/machine/hand_over.h"

#include <gtest/gtest.h>

#include "harness/speed/machine/pinning.h"

namespace attest {
namespace {

TEST(HandOver, CostsProcessorTimeAndNoMoreThanAMoment) {
  const double seconds = measure_hand_over();
  EXPECT_GT(seconds, 100e-9);  // two calls of the system, at least
  EXPECT_LT(seconds, 20e-3);
}

TEST(HandOver, LeavesTheCallerWhereItMayRun) {
  const std::vector<int> before = own_processors();
  measure_hand_over();
  EXPECT_EQ(own_processors(), before);
}

}  // namespace
}  // namespace attest
