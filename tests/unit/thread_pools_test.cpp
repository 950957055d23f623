// Pools that nobody passes a number of threads to are told it: by the environment, or by their library's function.
#include "harness/speed/machine/thread_pools.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "harness/speed/timing/bench.h"
#include "tests/faulty/faulty.h"
#include "tests/unit/helpers.h"

namespace {

int threads_of_pool = 8;

}  // namespace

// What a library would bring; exported by this program (tests/CMakeLists.txt).
extern "C" int openblas_get_num_threads() { return threads_of_pool; }
extern "C" void openblas_set_num_threads(int threads) { threads_of_pool = threads; }

namespace attest {
namespace {

TEST(ThreadPools, TheEnvironmentSaysNoMoreThanWasGiven) {
  setenv("OMP_NUM_THREADS", "8", 1);
  setenv("MKL_NUM_THREADS", "1", 1);
  unsetenv("OPENBLAS_NUM_THREADS");
  const std::vector<std::string>& names = limit_thread_pools(2);
  EXPECT_NE(std::find(names.begin(), names.end(), "NUMEXPR_NUM_THREADS"), names.end());
  EXPECT_STREQ(getenv("OMP_NUM_THREADS"), "2");
  EXPECT_STREQ(getenv("MKL_NUM_THREADS"), "1") << "fewer are the user's choice";
  EXPECT_STREQ(getenv("OPENBLAS_NUM_THREADS"), "2");
  for (const std::string& name : names) unsetenv(name.c_str());
}

TEST(ThreadPools, OfALibraryThatIsLoadedAreLoweredForAWhile) {
  threads_of_pool = 8;
  {
    LoadedPools pools(2);
    EXPECT_EQ(threads_of_pool, 2);
    ASSERT_EQ(std::count(pools.lowered().begin(), pools.lowered().end(), "OpenBLAS had 8 threads"), 1);
  }
  EXPECT_EQ(threads_of_pool, 8);
  threads_of_pool = 1;
  const LoadedPools none(2);
  EXPECT_EQ(threads_of_pool, 1) << "no pool gets more";
}

TEST(ThreadPools, ABenchmarkSaysWhichItLowered) {
  threads_of_pool = 8;
  const BackendSet set(faulty::faulty_backends(), {"correct"}, {1, ""});
  const BenchCase result =
      bench_case(case_from_line("seq=8 dim=8"), {set.all().front()}, {100, 50, 10, 2}, {1, 2, 0.001, 3});
  EXPECT_EQ(std::count(result.lowered_pools.begin(), result.lowered_pools.end(), "OpenBLAS had 8 threads"), 1);
  EXPECT_EQ(threads_of_pool, 8);
}

}  // namespace
}  // namespace attest
