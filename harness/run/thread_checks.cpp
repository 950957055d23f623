#include "harness/run/thread_checks.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "backends/side_by_side.h"
#include "harness/backends/isolation/shared_memory.h"
#include "harness/base/crash_message.h"
#include "harness/base/stopwatch.h"
#include "harness/cases/other_data.h"
#include "harness/cases/random.h"
#include "harness/verdict/plan_execution.h"
#include "harness/verdict/state_check.h"
#include "reference/call/call.h"

namespace attest {
namespace {

/// Rows enough that each of very many threads could get two; and no more work than a moment's.
constexpr std::int64_t kManyRows = 2 * ThreadChecks::kManyThreads;
constexpr double kMostWorkOfMany = 5e6;

/// Of cases with so much work one in so many is repeated, up to so many of a backend: so often, or in so much time.
constexpr double kLeastWork = 1e3, kMostWork = 2e5;
constexpr std::uint64_t kOneIn = 4, kStream = 9003;
constexpr int kMostRepeated = 2, kMostSideBySide = 3;
constexpr int kTimes = 200, kTimesSideBySide = 40;
constexpr double kSecondsEach = 0.25;

/// Threads that take the cores away at moments that nobody foresees, one for each core.
class Disturbance {
 public:
  Disturbance() {
    const unsigned cores = std::max(std::thread::hardware_concurrency(), 1u);
    for (unsigned n = 0; n < cores; ++n) threads_.emplace_back([this, n] { disturb(n); });
  }
  ~Disturbance() {
    done_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  void disturb(unsigned number) {
    Random random(number);
    while (!done_) {
      const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(random.below(150));
      while (std::chrono::steady_clock::now() < until && !done_) continue;
      if (random.below(2) == 0)
        sched_yield();
      else
        std::this_thread::sleep_for(std::chrono::microseconds(random.below(150)));
    }
  }

  std::atomic<bool> done_{false};
  std::vector<std::thread> threads_;
};

std::int64_t rows_of(const Problem& p) { return p.call.batch * p.call.query_heads * p.call.query_length; }

/// Runs a plan again and again; what comes out otherwise than the first time is held against the bound. Throws
/// CaseFault where it is wrong: Status::flaky, unless it always is.
void repeat(const PreparedCase& prepared, Backend& backend) {
  const Problem& p = prepared.problem();
  const Answers answers = prepared.answers_of(backend);
  const std::unique_ptr<Plan> plan = make_plan(backend, p);
  GuardedOutputs first(p), again(p);
  Repeats repeats;
  std::string wrong;
  const auto is_wrong = [&](const GuardedOutputs& outputs) {
    const std::string why = prepared.why_wrong(answers, p, prepared.inputs(), outputs);
    if (wrong.empty()) wrong = why;
    return !why.empty();
  };
  execute(*plan, prepared.inputs(), &first);
  const bool first_is_wrong = is_wrong(first);
  repeats = {first_is_wrong, 1};
  const Disturbance disturbance;
  const Stopwatch spent;
  for (int n = 1; n < kTimes && spent.seconds() < kSecondsEach; ++n) {
    run_plan(*plan);
    again.reset();
    plan->download(again.views());
    repeats.wrong += again.difference_from(first).empty() ? first_is_wrong : is_wrong(again);
    ++repeats.runs;
  }
  const std::string reason = fmt::format("{} of one plan: {}", repeats.text(), wrong);
  if (repeats.differ()) throw CaseFault(repeats, reason);
  if (repeats.wrong > 0) throw CaseFault(Status::fail, {Cause::other_threads}, reason);
}

/// Two plans of the case at the same time, one of them on other data.
void beside_another(const PreparedCase& prepared, Backend& backend) {
  const Problem& p = prepared.problem();
  const Answers answers = prepared.answers_of(backend);
  const std::unique_ptr<Plan> plan = make_plan(backend, p), other = make_plan(backend, p);
  CaseInputs data = prepared.own_data();
  change_data(p, data);
  GuardedOutputs outputs(p);
  execute(*plan, prepared.inputs(), nullptr);
  execute(*other, data.views(), nullptr);
  const Stopwatch spent;
  for (int n = 0; n < kTimesSideBySide && spent.seconds() < kSecondsEach; ++n) {
    run_side_by_side(*plan, *other);
    outputs.reset();
    plan->download(outputs.views());
    prepared.require_right(answers, p, prepared.inputs(), outputs, Cause::at_the_same_time);
  }
}

}  // namespace

bool ThreadChecks::take(const std::string& backend, const Problem& problem, int Asked::*count, int most) {
  const double work = dense_multiply_adds(problem);
  if (work < kLeastWork || work > kMostWork || state_steps(problem) == StateSteps{}) return false;
  if (hash_words(life_seed(problem, 0), kStream, 0) % kOneIn != 0) return false;
  const std::lock_guard lock(mutex_);
  return (asked_[backend].*count)++ < most;
}

bool ThreadChecks::take_many(const std::string& backend, const Problem& problem) {
  if (rows_of(problem) < kManyRows || dense_multiply_adds(problem) > kMostWorkOfMany) return false;
  const std::lock_guard lock(mutex_);
  return !std::exchange(asked_[backend].many, true);
}

void ThreadChecks::with_many_threads(const PreparedCase& prepared, const std::string& backend) const {
  const std::unique_ptr<Backend> many = backends_.fresh(backend, kManyThreads);
  if (!many) return;
  const Problem& p = prepared.problem();
  GuardedOutputs outputs(p);
  try {
    walk_once(*many, p, prepared.inputs(), outputs);
  } catch (const NoSharedMemory&) {
    return;  // no fault of the backend, which was right without a worker
  }
  prepared.require_right(prepared.answers_of(*many), p, prepared.inputs(), outputs, Cause::other_threads);
  repeat(prepared, *many);
}

void ThreadChecks::many_times(const PreparedCase& prepared, Backend& backend) const {
  repeat(prepared, backend);
  for (Backend* other : find_in_each(others_, backend.identity().name)) repeat(prepared, *other);
}

void ThreadChecks::look_at(const PreparedCase& prepared, Backend& backend) {
  const Problem& p = prepared.problem();
  const std::string name = backend.identity().name;
  if (take_many(name, p)) with_many_threads(prepared, name);
  if (take(name, p, &Asked::repeated, kMostRepeated)) many_times(prepared, backend);
  if (runs_side_by_side(backend) && take(name, p, &Asked::side_by_side, kMostSideBySide))
    beside_another(prepared, backend);
}

}  // namespace attest
