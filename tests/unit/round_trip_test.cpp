#include "harness/speed/timing/round_trip.h"

#include <gtest/gtest.h>

namespace attest {
namespace {

TEST(RoundTrip, TakesSomeMicrosecondsAndIsMeasuredOnce) {
  const double seconds = fastest_round_trip();
  EXPECT_GT(seconds, 1e-6);
  EXPECT_LT(seconds, 2e-3);
  EXPECT_EQ(fastest_round_trip(), seconds);
}

}  // namespace
}  // namespace attest
