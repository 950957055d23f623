// A bench that ends early, by a signal or because a plan turned wrong after good samples, keeps what was measured:
// Google Benchmark ends the program when samples of one benchmark differ in their number of runs.
#include "harness/speed/timing/google_samples.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

#include "harness/base/interrupted.h"
#include "harness/speed/timing/bench.h"
#include "tests/faulty/around.h"
#include "tests/faulty/faulty.h"
#include "tests/unit/helpers.h"

namespace attest {
namespace {

/// Right until somebody says otherwise.
class TiringBackend : public faulty::BackendAround {
 public:
  TiringBackend() : BackendAround({"tiring", "", "CPU"}, faulty::faulty_backends().front().make({1, ""})) {}
  std::unique_ptr<Plan> prepare(const Call& p) override {
    return std::make_unique<TiringPlan>(inner_->prepare(p), tired);
  }

  std::atomic<bool> tired{false};

 private:
  class TiringPlan : public faulty::PlanAround {
   public:
    TiringPlan(std::unique_ptr<Plan> inner, const std::atomic<bool>& tired)
        : PlanAround(std::move(inner)), tired_(tired) {}
    void run() override {
      if (!tired_) inner_->run();
    }

   private:
    const std::atomic<bool>& tired_;
  };
};

/// Does `at_fourth` before the fourth sample of six.
BenchLine bench_until(const std::function<void()>& at_fourth, TiringBackend& backend) {
  BenchSettings settings{1, 6, 0.005, 1};
  settings.progress = [&](const std::string& what) {
    if (what.ends_with("sample 4")) at_fourth();
  };
  return bench_case(case_from_line("heads=2 seq=32 dim=16"), {&backend}, measure_roof(1), settings).lines.at(0);
}

TEST(GoogleSamples, APlanThatTurnsWrongAfterGoodSamplesHasNoSpeed) {
  TiringBackend backend;
  const BenchLine line = bench_until([&] { backend.tired = true; }, backend);
  // On rows, where it is known again, or in full where the fourth sample or the one before is the one that is.
  EXPECT_TRUE(line.wrong.kind == NoSpeed::wrong_while_timed || line.wrong.kind == NoSpeed::earlier_result)
      << line.wrong.text;
}

TEST(GoogleSamples, AnInterruptKeepsTheSamplesBefore) {
  TiringBackend backend;
  const BenchLine line = bench_until([] { interrupted = true; }, backend);
  interrupted = false;
  EXPECT_EQ(line.wrong.text, "");
  EXPECT_EQ(line.seconds.size(), 3u);
}

/// Its flags have their defaults from there before main begins, so it takes another process.
TEST(GoogleSamples, TheEnvironmentOfGoogleBenchmarkChangesNothing) {
  for (const char* variable : {"BENCHMARK_FILTER=zzz", "BENCHMARK_REPORT_AGGREGATES_ONLY=true",
                               "BENCHMARK_LIST_TESTS=true", "BENCHMARK_OUT=/nowhere/at/all"}) {
    const pid_t child = fork();
    if (child == 0) {
      putenv(const_cast<char*>(variable));
      execl("/proc/self/exe", "unit_tests", "--gtest_brief=1",
            "--gtest_filter=GoogleSamples.AnInterruptKeepsTheSamplesBefore", nullptr);
      _exit(127);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << variable;
  }
}

}  // namespace
}  // namespace attest
