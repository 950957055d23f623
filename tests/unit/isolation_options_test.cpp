#include "harness/backends/isolation/isolation_options.h"

#include <gtest/gtest.h>

#include "harness/cases/case.h"
#include "reference/options/case_line.h"

namespace attest {
namespace {

using namespace std::chrono_literals;

std::chrono::milliseconds limit_of(const char* line, std::chrono::milliseconds base) {
  return request_limit({base, 0}, case_from_line(line).problem);
}

TEST(IsolationOptions, SmallCallsHaveTheLimitThatWasAskedFor) {
  EXPECT_EQ(limit_of("seq=4 dim=4", 250ms), 250ms);
  EXPECT_EQ(limit_of("heads=8 seq=128 dim=64", 60s), 60s);
}

TEST(IsolationOptions, RowsAndPairsAdd) {
  EXPECT_EQ(limit_of("batch=65544 heads=128 seq=1 dim=1", 60s), 60s + 847s);  // 8,389,632 rows of one key
  EXPECT_EQ(limit_of("seq=1000x65000 dim=1", 1s), 1s + 65s);                  // 65,000,000 pairs
  EXPECT_EQ(limit_of("batch=0 seq=1000 dim=1", 1s), 1s);
}

}  // namespace
}  // namespace attest
