#include "harness/speed/trust/resting_threads.h"

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

TEST(RestingThreads, NobodyIsWaitedForWhereAllRest) {
  RestingThreads threads;
  const Stopwatch watch;
  EXPECT_TRUE(threads.settle());
  EXPECT_LT(watch.seconds(), RestingThreads::kLongest);
  EXPECT_EQ(threads.blame("x"), 0);
}

TEST(RestingThreads, APoolThatWaitsForAWhileIsWaitedFor) {
  RestingThreads threads;
  const std::jthread pool = waiting_for(200ms);
  const Stopwatch watch;
  EXPECT_TRUE(threads.settle());
  EXPECT_GT(watch.seconds(), 0.15);
}

TEST(RestingThreads, WhoNeverRestsIsKnownAndNoLongerWaitedFor) {
  RestingThreads threads;
  std::jthread first = waiting_for(1h);
  EXPECT_FALSE(threads.settle());
  EXPECT_EQ(threads.blame("mine"), 1);
  EXPECT_TRUE(threads.left_by("mine"));
  EXPECT_FALSE(threads.left_by("other"));
  EXPECT_TRUE(threads.settle());

  std::jthread second = waiting_for(1h);
  EXPECT_FALSE(threads.settle()) << "another one";
  EXPECT_EQ(threads.blame("other"), 1) << "the first stays whose it was";
  EXPECT_EQ(threads.restless().size(), 2u);

  first.request_stop();
  first.join();
  threads.look_again();
  EXPECT_FALSE(threads.left_by("mine"));
  EXPECT_TRUE(threads.left_by("other"));
}

}  // namespace
}  // namespace attest
