// The rules by which a benchmark judges what it measured, on numbers made up for each.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <thread>

#include "harness/base/machine.h"
#include "harness/base/raw_clock.h"
#include "harness/speed/files/bench_table.h"
#include "harness/speed/machine/known_devices.h"
#include "harness/speed/machine/machine_watch.h"
#include "harness/speed/timing/bench.h"
#include "harness/speed/trust/processor_time.h"
#include "harness/speed/trust/thread_demand.h"
#include "harness/speed/trust/untimed_work.h"

namespace attest {
namespace {

/// An honest backend: 10 ms where the roof allows 5, tensors of 4 MB copied at 2 GB/s.
const MachineLimits kLimits{5e6, 1e9, 4e6, 1e6, 2e9, true, 2};
StepSamples honest() {
  StepSamples s;
  s.run = {10e-3, 10e-3, 11e-3};
  s.upload = {3e-3, 3e-3};
  s.download = {1e-3, 1e-3};
  s.waited = {{0.2e-3, 0}, {-0.1e-3, 0}, {30e-3, 1e-3}};  // the last one waited for a neighbour
  s.fetched = {{1e-3, 1e-3}, {3e-3, 2e-3}};
  s.repeated = {{{10e-3, 20e-3}, {9e-3, 18e-3}}, {{50e-3, 20e-3}, {10e-3, 20e-3}}};
  s.threads = {1.9, 2.0, 2.1};
  return s;
}

bool has(const std::string& text, const char* piece) { return text.find(piece) != std::string::npos; }

TEST(OutsideRun, AnHonestPlanPasses) {
  EXPECT_EQ(untimed_work(honest(), kLimits).text, "");
  EXPECT_EQ(untimed_work({}, {}).text, "");
}

TEST(OutsideRun, RunMayBeatTheRoofByATenthAtMost) {
  StepSamples s = honest();
  s.waited = {};
  s.run = {4.6e-3, 4.6e-3};
  EXPECT_EQ(untimed_work(s, kLimits).text, "");
  s.run = {4.5e-3, 4.5e-3};
  EXPECT_EQ(untimed_work(s, kLimits).kind, NoSpeed::above_roof);
  MachineLimits unknown = kLimits;
  unknown.peak = 0;  // a device whose roof nobody measured
  EXPECT_EQ(untimed_work(s, unknown).text, "");
  s.uploaded = {{45e-3, 45e-3}, {45e-3, 45e-3}, {45e-3, 45e-3}};
  EXPECT_EQ(untimed_work(s, unknown).kind, NoSpeed::upload_works) << "no roof is needed for that";
  s.uploaded = {{45e-3, 45e-3}, {12e-3, 12e-3}};  // converting takes 16 at most, a quarter of a run 1
  EXPECT_EQ(untimed_work(s, unknown).text, "");
  s.uploaded = {{45e-3, 1e-3}, {45e-3, 1e-3}};  // a neighbour
  EXPECT_EQ(untimed_work(s, unknown).text, "");
}

TEST(OutsideRun, ADownloadThatAlwaysWaitsIsFound) {
  StepSamples s = honest();
  s.waited = {{6e-3, 6e-3}, {7e-3, 7e-3}, {9e-3, 9e-3}};
  EXPECT_EQ(untimed_work(s, kLimits).kind, NoSpeed::first_download_works);
  s.waited.push_back({1e-3, 1e-3});  // once it didn't
  EXPECT_FALSE(untimed_work(s, kLimits).empty());
  s.waited.push_back({1e-3, 1e-3});
  EXPECT_EQ(untimed_work(s, kLimits).text, "");
  s.waited = {{6e-3, 6e-3}, {1e-3, 1e-3}};
  EXPECT_EQ(untimed_work(s, kLimits).text, "") << "no proof in one of two";
  EXPECT_FALSE(untimed_work(s, kLimits, Evidence::suspicion).empty()) << "but a reason to measure more";
  s.waited = {{6e-3, 6e-3}, {7e-3, 7e-3}, {0, 0, 30e-3}, {0, 0, 30e-3}};  // asked too late to tell
  EXPECT_FALSE(untimed_work(s, kLimits).empty());
  s.waited = {{6e-3, 0}, {7e-3, 0}, {9e-3, 0}};  // a neighbour: nothing of this process computed
  EXPECT_EQ(untimed_work(s, kLimits).text, "");
  s.waited = {{3e-6, 9e-3}, {3e-6, 9e-3}};  // helpers that turn in a circle: the download itself was no longer
  EXPECT_EQ(untimed_work(s, kLimits).text, "");
  s.waited = {{3e-3, 6e-3}, {3e-3, 6e-3}};  // two threads went on with the work
  EXPECT_FALSE(untimed_work(s, kLimits).empty());
  s.waited = {{6e-3, 0}, {7e-3, 0}, {9e-3, 0}};
  MachineLimits device = kLimits;
  device.host = false;
  EXPECT_FALSE(untimed_work(s, device).empty());
}

TEST(OutsideRun, ADownloadThatAlwaysComputesIsFound) {
  StepSamples s = honest();
  // A quarter of a run of 10 ms beyond copies that take 2, or converting that takes 4.
  s.fetched = {{5e-3, 5e-3}, {5e-3, 5e-3}};
  EXPECT_EQ(untimed_work(s, kLimits).text, "");
  s.fetched = {{13e-3, 13e-3}, {13e-3, 13e-3}};
  EXPECT_EQ(untimed_work(s, kLimits).kind, NoSpeed::download_works);
  s.fetched = {{13e-3, 1e-3}, {13e-3, 1e-3}};  // a neighbour
  EXPECT_EQ(untimed_work(s, kLimits).text, "");
  s.fetched = {{4e-6, 13e-3}, {4e-6, 13e-3}};  // helpers that turn in a circle beside it
  EXPECT_TRUE(untimed_work(s, kLimits).empty());
  s.fetched = {{0.25e-3, 0.25e-3}, {0.25e-3, 0.25e-3}};  // as long as any download may take
  s.run = {1e-5, 1e-5};
  MachineLimits tiny = kLimits;
  tiny.operations = tiny.bytes_out = 1;
  tiny.bytes_in = 1;
  EXPECT_FALSE(untimed_work(s, tiny).empty());
  s.fetched = {{0.15e-3, 0.15e-3}, {0.15e-3, 0.15e-3}};
  s.waited = {}, s.repeated = {};
  s.upload = {1e-5, 1e-5};
  EXPECT_EQ(untimed_work(s, tiny).text, "");
}

TEST(OutsideRun, AnUploadThatComputesIsFound) {
  StepSamples s = honest();
  s.upload = {15e-3, 15e-3};
  EXPECT_EQ(untimed_work(s, kLimits).kind, NoSpeed::upload_works);
  s.upload = {10e-3, 10e-3};
  EXPECT_EQ(untimed_work(s, kLimits).text, "");
}

/// A driver hands commands to threads of its own, which costs many times as much on a virtual machine.
TEST(OutsideRun, AMoveMayTakeSomeHandOversToAnotherThread) {
  StepSamples s;
  s.run = {1e-4, 1e-4};
  MachineLimits small{1e3, 1e9, 1e3, 1e3, 2e9, true, 1, 1e9};
  s.fetched = {{0.5e-3, 0.5e-3}, {0.5e-3, 0.5e-3}};
  EXPECT_EQ(untimed_work(s, small).kind, NoSpeed::download_works);
  small.hand_over = 70e-6;
  EXPECT_EQ(untimed_work(s, small).text, "");
  s.fetched = {{0.6e-3, 0.6e-3}, {0.6e-3, 0.6e-3}};
  EXPECT_EQ(untimed_work(s, small).kind, NoSpeed::download_works);
  s.fetched = {{1.2e-3, 1.2e-3}, {1.2e-3, 1.2e-3}};
  small.hand_over = 1;  // and no more than a device's driver may take
  EXPECT_EQ(untimed_work(s, small).kind, NoSpeed::download_works);
  s.fetched = {};
  s.uploaded = {{0.5e-3, 0.5e-3}, {0.5e-3, 0.5e-3}};
  small.hand_over = 50e-6;
  EXPECT_EQ(untimed_work(s, small).kind, NoSpeed::upload_works);
  small.hand_over = 70e-6;
  EXPECT_EQ(untimed_work(s, small).text, "");
}

/// Where a call is small, nothing but what its bytes cost and a call of an interpreter is allowed.
TEST(OutsideRun, AMomentInUploadIsFoundWhereCopyingTakesNone) {
  StepSamples s;
  s.run = {1e-3, 1e-3};
  const MachineLimits small{1e5, 1e9, 1e4, 1e3, 2e9, true, 1, 1e9};
  s.uploaded = {{0.2e-3, 0.2e-3}, {0.2e-3, 0.2e-3}};
  EXPECT_EQ(untimed_work(s, small).text, "");
  s.uploaded = {{0.6e-3, 0.6e-3}, {0.6e-3, 0.6e-3}};
  EXPECT_EQ(untimed_work(s, small).kind, NoSpeed::upload_works);
  MachineLimits device = small;
  device.host = false;  // whose driver has to be called
  EXPECT_EQ(untimed_work(s, device).text, "");
}

TEST(OutsideRun, AnswersFromACacheAreFound) {
  StepSamples s = honest();
  s.repeated = {{{10e-3, 20e-3}, {1e-3, 2e-3}}, {{10e-3, 20e-3}, {2e-3, 4e-3}}};
  EXPECT_EQ(untimed_work(s, kLimits).kind, NoSpeed::cached);
  s.repeated.push_back({{10e-3, 20e-3}, {9e-3, 18e-3}});
  EXPECT_EQ(untimed_work(s, kLimits).text, "");
}

TEST(OutsideRun, ThreadsAreHeldAgainstThoseGiven) {
  StepSamples s = honest();
  s.threads = {2.0, 3.0, 3.0, 3.0};
  EXPECT_EQ(untimed_work(s, kLimits).kind, NoSpeed::more_threads);
  s = honest();
  s.processors = {2.0, 2.4, 2.5, 2.4};
  EXPECT_EQ(untimed_work(s, kLimits).kind, NoSpeed::more_threads) << "by clocks nothing is rounded up";
  s.processors = {2.0, 2.05, 2.08, 2.04};
  EXPECT_EQ(untimed_work(s, kLimits).text, "");
  s.processors = {2.4, 2.4, 2.4, 2.4};
  s.repeated = {};
  s.waited = {};
  s.run = {250e-6, 250e-6};  // in which a caller computes, too, while it hands work over
  MachineLimits no_roof = kLimits;
  no_roof.peak = 0;
  EXPECT_EQ(untimed_work(s, no_roof).text, "");
  s.run = {10e-3, 10e-3};
  no_roof.host = false;  // threads of a driver that wait in a loop
  EXPECT_EQ(untimed_work(s, no_roof).text, "");
}

TEST(StatedDevice, IsHeldAgainstWhatTheMachineHas) {
  const std::vector<std::string> names = {"NVIDIA H200"};
  EXPECT_EQ(stated_device({"a", "", "CPU, 2 thread(s)"}, names), StatedDevice::host);
  EXPECT_EQ(stated_device({"a", "", "NVIDIA CUDA: NVIDIA H200 (GPU kernel)"}, names), StatedDevice::accelerator);
  EXPECT_EQ(stated_device({"a", "", "NVIDIA H200 (GPU kernel)"}, {}), StatedDevice::unknown);
  EXPECT_EQ(stated_device({"a", "", "GPU of mine"}, names), StatedDevice::unknown);
  EXPECT_EQ(stated_device({"a", "", ""}, names), StatedDevice::unknown);
}

/// A process that computes while this one rests is seen while it lives, and when it has ended; whoever ended before it
/// leaves it in sight.
TEST(ProcessorTime, CountsDescendants) {
  adopt_orphans();
  // Against what a fork and an exit may take on a busy machine.
  constexpr double kWork = 0.2, kOverhead = 0.15;
  const auto compute = [] {
    const double end = seconds_of_clock(CLOCK_PROCESS_CPUTIME_ID) + kWork;
    while (seconds_of_clock(CLOCK_PROCESS_CPUTIME_ID) < end) continue;
  };
  ProcessorTime waited;
  waited.begin_run();
  const pid_t child = fork();
  if (child == 0) {
    compute();
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  waited.end_run();
  EXPECT_NEAR(waited.descendants(), kWork, kOverhead);
  EXPECT_LT(waited.own(), kOverhead);

  ProcessorTime orphaned;
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t parent = fork();
  if (parent == 0) {
    const pid_t orphan = fork();
    if (orphan == 0) {
      compute();
      const pid_t own = getpid();
      if (write(ends[1], &own, sizeof own) != sizeof own) _exit(1);
      alarm(60);
      pause();
    }
    _exit(0);
  }
  waitpid(parent, nullptr, 0);
  pid_t orphan = 0;
  ASSERT_EQ(read(ends[0], &orphan, sizeof orphan), static_cast<ssize_t>(sizeof orphan));
  EXPECT_NEAR(orphaned.descendants(), kWork, kOverhead);
  ProcessorTime later;  // which it does nothing in, and then ends
  later.begin_run();
  later.end_run();
  EXPECT_LT(later.descendants(), kOverhead);
  kill(orphan, SIGKILL);
  EXPECT_EQ(waitpid(orphan, nullptr, 0), orphan) << "adopted";
  EXPECT_LT(later.descendants(), kOverhead) << "what it took before isn't counted when it ends";
  close(ends[0]);
  close(ends[1]);
}

TEST(ThreadDemand, CountsThreadsThatWorkedOrWaited) {
  const std::set<int> expected = {2, 3};
  EXPECT_EQ(
      which_work({{1, {5, 0}}, {2, {1, 0}}}, {{1, {5.1, 0}}, {2, {1.1, 0.5}}, {3, {0.5, 0}}, {4, {0.001, 0.9}}}, 1),
      expected)
      << "one works, one works and waits, one is too small, and one only woke";
  const auto before = times_of_other_threads();
  {
    std::jthread spinning([](const std::stop_token& stop) {
      while (!stop.stop_requested()) continue;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    EXPECT_FALSE(which_work(before, times_of_other_threads(), 0.1).empty());
  }
}

TEST(MachineWatch, WhatDisturbsASample) {
  Disturbance d;
  d.seconds = 1;
  EXPECT_EQ(disturbed_by(d, 2, 2), "");
  d.others = 0.2;
  EXPECT_TRUE(has(disturbed_by(d, 2, 2), "other processes used 0.20 processors"));
  EXPECT_EQ(disturbed_by(d, 1, 2), "") << "one processor is free for them";
  d.busy_threads = 1;
  EXPECT_EQ(disturbed_by(d, 1, 2), "");
  d.others = 0;
  EXPECT_TRUE(has(disturbed_by(d, 2, 2), "1 thread(s) that another backend left running"));
  d.busy_threads = 0;
  d.others = 0.2;
  d.seconds = 0.01;
  EXPECT_EQ(disturbed_by(d, 2, 2), "") << "ticks can't tell this from nothing";
  d = {};
  d.seconds = 1;
  d.steal = 0.1;
  EXPECT_TRUE(has(disturbed_by(d, 1, 2), "hypervisor kept 0.10"));
  d = {};
  d.slowdown = 1.3;
  EXPECT_TRUE(has(disturbed_by(d, 1, 2), "fixed loop took 1.30"));
}

TEST(MachineWatch, SeesABusyMachine) {
  const int processors = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  MachineWatch watch;
  watch.begin();
  std::vector<pid_t> children;
  for (int n = 0; n < 2 * processors; ++n) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(2);
      for (volatile int x = 0;;) x = x + 1;
    }
    children.push_back(child);
  }
  usleep(500'000);
  const Disturbance d = watch.end();
  for (const pid_t child : children) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
  EXPECT_NE(disturbed_by(d, processors, processors), "") << d.others << ' ' << d.steal;
}

TEST(SampleInterval, ByHandAndAsOftenAsItSays) {
  const SampleInterval nine = interval_of_median({9, 8, 7, 6, 5, 4, 3, 2, 1}, 0.95);
  EXPECT_EQ(nine.low, 2);
  EXPECT_EQ(nine.high, 8);
  EXPECT_NEAR(nine.confidence, 1 - 2.0 * (1 + 9) / 512, 1e-12);
  const SampleInterval three = interval_of_median({3, 1, 2}, 0.95);
  EXPECT_EQ(three.low, 1);
  EXPECT_EQ(three.high, 3);
  EXPECT_NEAR(three.confidence, 0.75, 1e-12);
  EXPECT_EQ(interval_of_median({}, 0.95).confidence, 0);
  std::mt19937 random(7);
  std::exponential_distribution<double> draw(1);
  int missed = 0;
  for (int n = 0; n < 2000; ++n) {
    std::vector<double> samples(15);
    for (double& x : samples) x = draw(random);
    const SampleInterval interval = interval_of_median(samples, 0.95);
    missed += interval.low > std::log(2.0) || interval.high < std::log(2.0);
  }
  EXPECT_LE(missed, 100);
  EXPECT_GE(missed, 20);
}

TEST(SampleInterval, OfManySamplesIsNarrow) {
  for (const int count : {500, 1074, 1075, 2000, 100'000}) {
    std::vector<double> samples;
    for (int n = 0; n < count; ++n) samples.push_back(n + 1);
    const SampleInterval interval = interval_of_median(samples, 0.95);
    // Half of the tosses, and 1.96 times the root of a quarter of them either way.
    const double middle = (count + 1) / 2.0, reach = 1.96 * std::sqrt(count) / 2;
    EXPECT_NEAR(interval.low, middle - reach, 2) << count;
    EXPECT_NEAR(interval.high, middle + reach, 2) << count;
    EXPECT_GE(interval.confidence, 0.95) << count;
    EXPECT_LE(interval.confidence, 0.96) << count;
  }
}

TEST(Roof, IsThatOfThisProcessorAlone) {
  EXPECT_TRUE(roof_is_of({"a", "", "CPU, 2 thread(s)"}, DType::f32));
  EXPECT_TRUE(roof_is_of({"a", "", "Portable Computing Language: pthread-skylake-avx512-x (CPU kernel)"}, DType::f64));
  EXPECT_TRUE(roof_is_of({"a", "", "a driver: " + this_machine().cpu}, DType::f32));
  EXPECT_FALSE(roof_is_of({"a", "", "NVIDIA H200 (GPU kernel)"}, DType::f32));
  EXPECT_EQ(roof_factor(DType::f32), 1);
  EXPECT_GE(roof_factor(DType::bf16), 1) << "products of halves may be faster, by no more than this";
}

/// Two backends, the first twice as fast.
BenchCase two_lines() {
  BenchCase result;
  result.case_line = "seq=4 dim=4";
  for (const double ms : {1.0, 2.0}) {
    BenchLine line;
    line.backend = ms == 1 ? "quick" : "slow";
    line.seconds.assign(9, ms / 1e3);
    line.total_seconds = 5e-3 - ms / 1e3;
    line.interval = interval_of_median(line.seconds, kConfidence);
    result.lines.push_back(line);
  }
  return result;
}

std::string printed(const BenchCase& result) {
  testing::internal::CaptureStdout();
  print_bench_table(result);
  return testing::internal::GetCapturedStdout();
}

TEST(BenchTable, RanksByTotalAndOnKnownDevicesByRun) {
  const std::string table = printed(two_lines());
  EXPECT_TRUE(has(table, "1.33x (1.33 to 1.33)")) << table;
  const std::size_t steps = table.find("steps, ms");
  ASSERT_NE(steps, std::string::npos);
  EXPECT_LT(table.find("slow"), table.find("quick")) << "by total the other one is faster";
  EXPECT_LT(table.find("slow", steps), table.find("quick", steps));
  BenchCase devices = two_lines();
  for (BenchLine& line : devices.lines) line.device = StatedDevice::accelerator;
  const std::string by_run = printed(devices);
  EXPECT_TRUE(has(by_run, "2.00x (2.00 to 2.00)")) << by_run;
  EXPECT_LT(by_run.find("quick"), by_run.find("slow")) << "of a device that is known run alone counts";
}

TEST(BenchTable, TellsTheMachineAndWhatIsNotKnown) {
  BenchCase result = two_lines();
  EXPECT_FALSE(has(printed(result), "machine:")) << "nobody measured it again";
  result.roof_after = 123.4;
  result.calibration_spread = 0.03;
  result.lines[0].steps.memory_peak = 7e6;
  const std::string table = printed(result);
  EXPECT_TRUE(has(table, "machine: 123 GFLOP/s FMA once more; quartiles of a fixed loop 3% apart")) << table;
  EXPECT_TRUE(has(table, "0%       7.0")) << table;
  EXPECT_TRUE(has(table, "0%         - ")) << "memory that the system does not tell: " << table;
}

TEST(BenchTable, AnIntervalOfFewSamplesSaysWhatItCovers) {
  BenchCase result = two_lines();
  result.lines[0].seconds = {1e-3, 1.1e-3, 1.2e-3};
  result.lines[1].seconds = {2e-3};
  for (BenchLine& line : result.lines) line.interval = interval_of_median(line.seconds, kConfidence);
  const std::string table = printed(result);
  EXPECT_TRUE(has(table, "1.000 to 1.200, 75%")) << table;
  EXPECT_FALSE(has(table, "2.000 to 2.000")) << table;
  EXPECT_TRUE(has(printed(two_lines()), "1.000 to 1.000 ")) << "nine cover what the head says";
}

TEST(BenchTable, ADisturbedLineIsNeverRankedSilently) {
  BenchCase result = two_lines();
  result.lines[0].disturbed = "other processes used 1.00 processors";
  result.lines[0].samples_disturbed = 7;
  const std::string table = printed(result);
  EXPECT_TRUE(has(table, "1.33x?")) << table;
  EXPECT_TRUE(has(table, "? quick was disturbed in 7 samples")) << table;
}

TEST(BenchTable, SaysWhereTheRoofIsNotKnownAndWhoHasNoSpeed) {
  BenchCase result = two_lines();
  result.lines[0].roof_measured = false;
  result.lines[0].device = StatedDevice::unknown;
  result.lines[0].stated = "GPU of mine";
  result.lines[1].wrong = {NoSpeed::download_works, "works outside run"};
  const std::string table = printed(result);
  EXPECT_TRUE(has(table, "quick: this machine is not known to have its device, GPU of mine")) << table;
  EXPECT_TRUE(has(table, "quick: the roof of its device and type was not measured")) << table;
  EXPECT_TRUE(has(table, "slow       no speed: works outside run")) << table;
}

}  // namespace
}  // namespace attest
