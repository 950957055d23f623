#include "harness/speed/trust/idle_threads.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "harness/base/stopwatch.h"

namespace attest {
namespace {

using namespace std::chrono_literals;

/// A pool that waits in a loop for so long.
std::jthread waiting_for(std::chrono::milliseconds time) {
  return std::jthread([time](const std::stop_token& stop) {
    const auto end = std::chrono::steady_clock::now() + time;
    while (!stop.stop_requested() && std::chrono::steady_clock::now() < end) continue;
  });
}

TEST(IdleThreads, NobodyIsWaitedForWhereAllRest) {
  IdleThreads threads;
  const Stopwatch watch;
  EXPECT_TRUE(threads.wait_until_idle());
  EXPECT_LT(watch.seconds(), IdleThreads::kLongest);
  EXPECT_EQ(threads.attribute("x"), 0);
}

TEST(IdleThreads, APoolThatWaitsForAWhileIsWaitedFor) {
  IdleThreads threads;
  const std::jthread pool = waiting_for(200ms);
  const Stopwatch watch;
  EXPECT_TRUE(threads.wait_until_idle());
  EXPECT_GT(watch.seconds(), 0.15);
}

TEST(IdleThreads, WhoNeverRestsIsKnownAndNoLongerWaitedFor) {
  IdleThreads threads;
  std::jthread first = waiting_for(1h);
  EXPECT_FALSE(threads.wait_until_idle());
  EXPECT_EQ(threads.attribute("mine"), 1);
  EXPECT_TRUE(threads.left_by("mine"));
  EXPECT_FALSE(threads.left_by("other"));
  EXPECT_TRUE(threads.wait_until_idle());

  std::jthread second = waiting_for(1h);
  EXPECT_FALSE(threads.wait_until_idle()) << "another one";
  EXPECT_EQ(threads.attribute("other"), 1) << "the first stays whose it was";
  EXPECT_EQ(threads.busy_threads().size(), 2u);

  first.request_stop();
  first.join();
  threads.look_again();
  EXPECT_FALSE(threads.left_by("mine"));
  EXPECT_TRUE(threads.left_by("other"));
}

}  // namespace
}  // namespace attest
