// Threads: a table for fewer than many, a rare race, and plans that share what a run writes are found; backends that
// promise nothing are asked for one run at a time.
#include "harness/run/thread_checks.h"

#include <atomic>
#include <chrono>
#include <thread>

#include "backends/side_by_side.h"
#include "tests/faulty/around.h"
#include "tests/unit/helpers.h"
#include "tests/unit/run_lines.h"

namespace attest {
namespace {

enum class Mistake { none, few_threads, rare, shared_scratch, shared_and_declined };

/// Of all plans: who is in run() now, and how often two were.
struct Scratch {
  std::atomic<int> inside{0}, together{0};
};

class MistakenPlan : public faulty::PlanAround {
 public:
  MistakenPlan(Mistake mistake, std::unique_ptr<Plan> plan, int threads, Scratch& scratch)
      : PlanAround(std::move(plan)), mistake_(mistake), threads_(threads), scratch_(scratch) {}
  void run() override {
    wrong_ = ++scratch_.inside > 1;
    std::this_thread::sleep_for(std::chrono::microseconds(300));
    inner_->run();
    wrong_ = wrong_ || scratch_.inside > 1;
    --scratch_.inside;
    scratch_.together += wrong_;
    ++runs_;
  }
  void download(const Outputs& outputs) override {
    inner_->download(outputs);
    const bool few = mistake_ == Mistake::few_threads && threads_ > 64;
    const bool rare = mistake_ == Mistake::rare && runs_ % 60 == 59;
    const bool shared = mistake_ == Mistake::shared_scratch && wrong_;
    if (few || rare || shared) store(outputs.out().data, outputs.out().dtype, 0, 1e6);
  }

 private:
  const Mistake mistake_;
  const int threads_;
  Scratch& scratch_;
  bool wrong_ = false;
  int runs_ = 0;
};

Scratch scratch;

class MistakenBackend : public faulty::BackendAround, public SideBySide {
 public:
  MistakenBackend(Mistake mistake, const Context& context)
      : BackendAround({"mistaken", "", "CPU"}, faulty::make_example()), mistake_(mistake), threads_(context.threads) {}
  bool runs_side_by_side() const override { return mistake_ != Mistake::shared_and_declined; }
  std::unique_ptr<Plan> prepare(const Call& call) override {
    return std::make_unique<MistakenPlan>(mistake_, inner_->prepare(call), threads_, scratch);
  }

 private:
  Mistake mistake_;
  int threads_;
};

template <Mistake mistake>
std::vector<BackendEntry> registry() {
  return {{"mistaken",
           [](const Context& context) -> std::unique_ptr<Backend> {
             return std::make_unique<MistakenBackend>(mistake, context);
           },
           ""}};
}

/// The causes of what fails among forty cases of one size.
template <Mistake mistake>
std::vector<Cause> causes() {
  const std::vector<BackendEntry> entries = registry<mistake>();
  const BackendSet set(entries, {}, {1, ""});
  std::vector<std::string> lines = {"heads=2 seq=70x3 dim=4"};
  for (int seed = 1; seed < 20; ++seed) lines.push_back("heads=4 seq=10x9 dim=8 seed=" + std::to_string(seed));
  scratch.together = 0;
  std::vector<Cause> found;
  for (const Verdict& v : run_lines(set, lines, without_shrinking()).verdicts) {
    if (v.status == Status::pass) continue;
    found.push_back(v.cause.kind);
    EXPECT_EQ(v.status == Status::flaky, v.cause.kind == Cause::not_every_time) << v.reason;
    EXPECT_EQ(v.status == Status::flaky, v.repeats && v.repeats->differ()) << v.reason;
  }
  return found;
}

TEST(ThreadChecks, VeryManyThreadsAreTriedOnce) {
  EXPECT_EQ(causes<Mistake::few_threads>(), std::vector<Cause>{Cause::other_threads});
}

TEST(ThreadChecks, ARareMistakeIsFoundByManyRuns) {
  const std::vector<Cause> found = causes<Mistake::rare>();
  ASSERT_FALSE(found.empty());
  for (const Cause cause : found) EXPECT_EQ(cause, Cause::not_every_time);
}

TEST(ThreadChecks, PlansThatPromiseItRunAtTheSameTime) {
  const std::vector<Cause> found = causes<Mistake::shared_scratch>();
  ASSERT_FALSE(found.empty());
  for (const Cause cause : found) EXPECT_EQ(cause, Cause::at_the_same_time);
}

TEST(ThreadChecks, PlansThatPromiseNothingRunOneAtATime) {
  EXPECT_TRUE(causes<Mistake::shared_and_declined>().empty());
  EXPECT_EQ(scratch.together, 0);
}

TEST(ThreadChecks, ARightBackendStaysRight) {
  EXPECT_TRUE(causes<Mistake::none>().empty());
  EXPECT_GT(scratch.together, 0) << "two plans were in run() at the same time";
}

}  // namespace
}  // namespace attest
