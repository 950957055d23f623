// What the machine lacks, told from what a kernel does wrong.
#include "harness/base/missing.h"

#include <gtest/gtest.h>

namespace attest {
namespace {

TEST(Missing, DriversAndDevices) {
  EXPECT_TRUE(names_what_is_missing("RuntimeError: No CUDA GPUs are available"));
  EXPECT_TRUE(names_what_is_missing("0 active drivers ([]). There should only be one."));
  EXPECT_TRUE(names_what_is_missing("clGetPlatformIDs failed: PLATFORM_NOT_FOUND_KHR"));
  EXPECT_FALSE(names_what_is_missing("CUDA error: an illegal memory access was encountered"));
  EXPECT_FALSE(names_what_is_missing("no tile for 4"));
  EXPECT_FALSE(names_what_is_missing(""));
}

}  // namespace
}  // namespace attest
