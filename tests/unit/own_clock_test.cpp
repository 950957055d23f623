// A program whose backend brings a clock of its own: nothing that is timed goes by it.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>

#include "harness/base/raw_clock.h"
#include "harness/base/stopwatch.h"
#include "harness/speed/timing/bench.h"
#include "tests/faulty/around.h"
#include "tests/faulty/faulty.h"
#include "tests/unit/helpers.h"

namespace {

/// Nanoseconds that the clock below keeps back.
std::atomic<long> hidden_time{0};

}  // namespace

/// In place of the C library's, for the whole program: what the C++ library's clocks go by.
extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const long failed = syscall(SYS_clock_gettime, clock, time);
  const long hidden = clock == CLOCK_REALTIME ? 0 : hidden_time.load();
  if (failed != 0 || hidden == 0) return static_cast<int>(failed);
  const long all = time->tv_sec * 1'000'000'000L + time->tv_nsec - hidden;
  time->tv_sec = all / 1'000'000'000L;
  time->tv_nsec = all % 1'000'000'000L;
  return 0;
}

namespace attest {
namespace {

long nanoseconds() {
  timespec time{};
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1'000'000'000L + time.tv_nsec;
}

/// Right, and nine tenths of what its runs take happen in no time.
class ClockBackend : public faulty::BackendAround {
 public:
  ClockBackend() : BackendAround({"own_clock", "", "CPU"}, faulty::faulty_backends().front().make({1, ""})) {}
  std::unique_ptr<Plan> prepare(const Call& p) override {
    return std::make_unique<ClockPlan>(*this, inner_->prepare(p));
  }

  double shortest = std::numeric_limits<double>::infinity();

 private:
  class ClockPlan : public faulty::PlanAround {
   public:
    ClockPlan(ClockBackend& owner, std::unique_ptr<Plan> inner) : PlanAround(std::move(inner)), owner_(owner) {}
    void run() override {
      const long start = nanoseconds();
      inner_->run();
      const long took = nanoseconds() - start;
      owner_.shortest = std::min(owner_.shortest, 1e-9 * static_cast<double>(took));
      hidden_time += took - took / 10;
    }

   private:
    ClockBackend& owner_;
  };
};

TEST(OwnClock, IsNotWhatABenchmarkGoesBy) {
  const auto before = std::chrono::steady_clock::now();
  hidden_time += 1'000'000'000L;
  ASSERT_LT(std::chrono::steady_clock::now(), before) << "this program's clock isn't the one of this test";
  ClockBackend backend;
  const BenchLine line =
      bench_case(case_from_line("heads=2 seq=64 dim=32"), {&backend}, measure_roof(1), {1, 4, 0.01, 1}).lines.at(0);
  hidden_time = 0;
  ASSERT_EQ(line.wrong.text, "");
  EXPECT_GE(line.median(), backend.shortest);
}

TEST(RawClock, GoesOnAsTimeDoes) {
  const Stopwatch watch;
  const double start = steady_seconds(), cpu = seconds_of_clock(CLOCK_PROCESS_CPUTIME_ID);
  usleep(20'000);
  EXPECT_GE(steady_seconds() - start, 0.02);
  EXPECT_GE(watch.seconds(), 0.02);
  EXPECT_GE(seconds_of_clock(CLOCK_PROCESS_CPUTIME_ID), cpu);
  EXPECT_GT(seconds_of_clock(process_clock(getpid())), 0);
  EXPECT_GT(seconds_of_clock(thread_clock(static_cast<int>(gettid()))), 0);
  EXPECT_LT(seconds_of_clock(12345), 0) << "no such clock";
  EXPECT_NE(random_bits(), random_bits());
}

}  // namespace
}  // namespace attest
