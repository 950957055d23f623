// What can't be had, told once for each reason.
#include "harness/base/unavailable.h"

#include <gtest/gtest.h>

namespace attest {
namespace {

TEST(Unavailable, IsToldOnceForEachReason) {
  EXPECT_TRUE(by_reason({}).empty());
  const std::vector<Unavailable> joined = by_reason({{"a", "no device"}, {"b", "no MPI"}, {"c", "no device"}});
  ASSERT_EQ(joined.size(), 2u);
  EXPECT_EQ(joined[0].name, "a, c");
  EXPECT_EQ(joined[0].reason, "no device");
  EXPECT_EQ(joined[1].name, "b");
}

}  // namespace
}  // namespace attest
