#include "harness/search/edges.h"

#include <gtest/gtest.h>

extern "C" void __sanitizer_cov_trace_pc();  // NOLINT(bugprone-reserved-identifier)

namespace attest {
namespace {

/// As the compiler would instrument it.
int instrumented_function(int n) {
  __sanitizer_cov_trace_pc();
  if (n > 10) {
    __sanitizer_cov_trace_pc();
    return n * 3;
  }
  return n;
}

/// Called as it stands, with no copies for certain arguments.
int (*volatile instrumented)(int) = instrumented_function;

TEST(Edges, EachIsCountedOnce) {
  count_new_edges();
  EXPECT_EQ(instrumented(1), 1);
  EXPECT_EQ(instrumented(2), 2);
  EXPECT_EQ(count_new_edges(), 1u);
  EXPECT_EQ(count_new_edges(), 0u);
  EXPECT_EQ(instrumented(11), 33);
  EXPECT_EQ(count_new_edges(), 1u) << "the one behind the condition";
}

}  // namespace
}  // namespace attest
