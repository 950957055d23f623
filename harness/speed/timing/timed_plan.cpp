#include "harness/speed/timing/timed_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <new>
#include <thread>

#include "harness/base/float_environment.h"
#include "harness/base/interrupted.h"
#include "harness/base/raw_clock.h"
#include "harness/base/stopwatch.h"
#include "harness/speed/machine/cpu_clock.h"
#include "harness/speed/machine/memory_peak.h"
#include "harness/speed/timing/no_speed_of.h"
#include "harness/speed/trust/idle_threads.h"
#include "harness/speed/trust/result_bits.h"
#include "harness/speed/trust/thread_demand.h"
#include "harness/speed/trust/untimed_work.h"
#include "harness/verdict/plan_execution.h"
#include "reference/base/reference_uses.h"

namespace attest {
namespace {

static_assert(kNames<NoSpeed>.size() == static_cast<std::size_t>(NoSpeed::unreported) + 1, "one name for each");

/// Long enough for a result that is still being computed to come in.
constexpr std::chrono::milliseconds kLater{50};
/// Runs that get the data of the run before again: an answer from a cache shows.
constexpr std::size_t kRepeats = 3;
/// Walks without a probe, by which downloads are judged.
constexpr int kUnannounced = 5;
/// Runs of a sample that are looked at by chance, on average.
constexpr std::uint64_t kLooks = 2;
/// Where a run is shorter than this, so many are taken together that they aren't.
constexpr double kBatch = 0.5e-3;
constexpr int kMostInBatch = 32;
/// What a sample may take altogether, in units of what its runs are meant to take.
constexpr double kSampleShare = 1.4;

NoSpeedReason changes_inputs() { return {NoSpeed::changes_inputs, "changes its inputs"}; }
NoSpeedReason late() {
  return {NoSpeed::result_after_run, "its output was not complete when run returned, and changed after it"};
}

}  // namespace

/// What a plan throws is why it has no speed.
template <class Steps>
void TimedPlan::attempt(const Steps& steps) {
  try {
    steps();
  } catch (const CaseFault& fault) {
    wrong_ = {no_speed_of(fault.status(), fault.cause()), fault.what()};
  } catch (const std::bad_alloc&) {
    wrong_ = {NoSpeed::out_of_memory, "ran out of memory"};
  } catch (const std::exception& error) {
    wrong_ = {NoSpeed::threw, std::string("threw: ") + error.what()};
  } catch (...) {
    wrong_ = {NoSpeed::threw, "threw something that is no std::exception"};
  }
}

/// One step of the plan, timed. Whoever computes with attest's own reference or leaves the floating-point modes changed
/// is found out here; the modes are put back, so that they cost nobody else his speed.
template <class Step>
double TimedPlan::guarded(const Step& step) {
  const std::uint64_t before = reference_uses();
  const FloatEnvironment environment;
  const double seconds = timed(step);
  const FailureCause changed{cause_of(environment.changed())};
  if (wrong_.empty() && !changed.empty()) wrong_ = {NoSpeed::float_mode_changed, changed.text()};
  if (reference_uses() != before && wrong_.empty()) {
    wrong_ = {NoSpeed::uses_reference, "calls attest's own reference"};
  }
  return seconds;
}

TimedPlan::TimedPlan(Backend& backend, TimedCase& shared) : backend_(backend), case_(shared) {
  attempt([&] {
    guarded([&] {
      name_ = backend.identity().name;
      const Answers answers = case_.as_written().answers_of(backend);
      if (answers.refusal) {
        wrong_ = {NoSpeed::refused, "refused: " + answers.refusal->reason};
      } else if (idle_threads().left_by(name_)) {
        wrong_ = {NoSpeed::threads_after_run, "works after run: threads that it left in an earlier case still compute"};
      } else {
        standard_ = standard_of(answers);
      }
    });
    if (!wrong_.empty()) return;
    const MemoryPeak memory;
    steps_.prepare = guarded([&] { plan_ = make_plan(backend, case_.problem()); });
    const Inputs& inputs = case_.changing().stage(*case_.as_written().source().inputs);
    guarded([&] { plan_->upload(inputs); });
    steps_.first_run = guarded([&] { plan_->run(); });
    steps_.memory_peak = memory.bytes();
    steps_.workspace = static_cast<double>(plan_->workspace_bytes());
    if (wrong_.empty()) check_as_written(inputs);
  });
  if (!plan_) return;
  check_inputs();
  case_.changing().restore();
  rest();
}

/// The plan for whoever judges it: its steps are guarded, and the judge, who may use the reference, is not.
class TimedPlan::WatchedSteps : public Plan {
 public:
  explicit WatchedSteps(TimedPlan& timed) : timed_(timed) {}
  void upload(const Inputs& inputs) override {
    timed_.guarded([&] { timed_.plan_->upload(inputs); });
  }
  void run() override {
    timed_.guarded([&] { timed_.plan_->run(); });
  }
  void download(const Outputs& outputs) override {
    timed_.guarded([&] { timed_.plan_->download(outputs); });
  }

 private:
  TimedPlan& timed_;
};

void TimedPlan::check_as_written(const Inputs& inputs) {
  WatchedSteps watched(*this);
  const Verdict verdict = case_.as_written().check(backend_, &watched, &inputs);
  if (wrong_.empty()) wrong_ = no_speed_of(verdict);
  if (verdict.status == Status::fail && is_late(inputs)) wrong_ = late();
  if (!wrong_.empty()) return;
  error_over_bound_ = verdict.error_over_bound.value_or(0);
  case_.outputs().reset();
  guarded([&] { plan_->download(case_.outputs().views()); });
  seen_.insert(fingerprint(case_.outputs()));
  ulps_ = ulps_of_output(verdict.accuracy);
}

/// Whether another run's output is wrong at once and right a little later.
bool TimedPlan::is_late(const Inputs& inputs) {
  const PreparedCase& written = case_.as_written();
  const SampleRows rows(case_.problem(), written.inputs(), written.expectation(), standard_);
  try {
    guarded([&] { plan_->upload(inputs); });
    guarded([&] { plan_->run(); });
    StepSamples::Cost cost;
    fetch(case_.outputs(), cost);
  } catch (const std::exception&) {
    return false;  // the reason that brought us here is told
  }
  return !rows.judge(case_.outputs()).wrong.empty() && completed_later(rows);
}

/// Before the next plan reads them: whoever wrote to the inputs is told so here.
void TimedPlan::check_inputs() {
  if (case_.changing().all_intact()) return;
  wrong_ = changes_inputs();
  case_.changing().restore();
}

std::int64_t TimedPlan::warm_up(double seconds) {
  double run = kInfinity, check = 0;
  for (int n = 0; n < 2 && wrong_.empty() && (n == 0 || run < seconds); ++n) {
    const Stopwatch watch;
    begin_sample(1, 0);
    run = std::min(run, run_once());
    end_sample();
    check = watch.seconds() - run;
  }
  if (!wrong_.empty() || run >= seconds) return 1;
  // A run that nobody looks at costs what changing and uploading data take besides.
  double each = kInfinity;
  for (int n = 0; n < 2 && wrong_.empty(); ++n) {
    const Stopwatch watch;
    attempt([&] { run = std::min(run, execute(SampleCheck::away).run); });
    each = std::min(each, watch.seconds());
  }
  check_inputs();
  rest();
  const double shortest = 1e-7;  // no clock tells less
  const double wanted = std::ceil(seconds / std::max(run, shortest));
  const double affordable = (kSampleShare * seconds - check) / std::max(each, shortest);
  planned_ = static_cast<std::int64_t>(std::max(1.0, std::min({wanted, affordable, 1e7})));
  return planned_;
}

void TimedPlan::begin_sample(std::int64_t runs, int in_full) {
  runs_ = runs;
  at_ = 0;
  in_full_ = in_full;
  checked_in_full_ = false;
  // In turn at first, so that short benchmarks have some of both.
  probed_ = sample_ < 4 ? sample_ % 2 == 0 : random_bits() % 3 == 0;
  ++sample_;
  device_ = own_cpu_ = wall_ = 0;
  cpu_.emplace();
  others_ = times_of_other_threads();
}

double TimedPlan::run_once() {
  Execution execute;
  attempt([&] {
    const bool last = ++at_ == runs_;
    const SampleCheck check = last && probed_ ? SampleCheck::with_probes
                              : last          ? SampleCheck::at_rows
                                              : SampleCheck::by_chance;
    checked_in_full_ = last && in_full_ > 0 && random_bits() % static_cast<std::uint64_t>(in_full_) == 0;
    if (checked_in_full_)
      execute_in_full(execute);
    else
      execute = this->execute(check);
  });
  if (!wrong_.empty()) return 0;
  steps_.upload.push_back(execute.upload);
  if (!checked_in_full_) steps_.uploaded.push_back({execute.upload, execute.upload_cpu});
  steps_.run.push_back(execute.run);
  if (execute.download > 0) {
    steps_.download.push_back(execute.download);
  }
  return execute.run;
}

void TimedPlan::end_sample() {
  check_inputs();
  // Over a shorter while the system's own accounts of threads are too coarse.
  constexpr double kAccounted = 5e-3;
  if (wall_ < kAccounted || !wrong_.empty()) return;
  const std::map<int, std::string>& busy_threads = idle_threads().busy_threads();
  std::set<int> others = which_work(others_, times_of_other_threads(), wall_);
  std::erase_if(others, [&](int thread) { return busy_threads.contains(thread); });
  const double seen = own_cpu_ / wall_ + static_cast<double>(others.size());
  const double busy = (cpu_->own() + cpu_->descendants()) / wall_;
  // Of threads and processes that have ended meanwhile clocks tell; and of those that another backend left running.
  steps_.threads.push_back(busy_threads.empty() ? std::max(busy, seen) : seen);
  if (busy_threads.empty()) steps_.processors.push_back(busy);
}

void TimedPlan::rest() {
  if (idle_threads().wait_until_idle()) return;
  if (wrong_.empty()) {
    wrong_ = {NoSpeed::threads_after_run,
              fmt::format("works after run: its threads still compute {:.0f} ms after run returned",
                          IdleThreads::kLongest * 1e3)};
  }
  attempt([&] { guarded([&] { plan_.reset(); }); });  // which may end them
  idle_threads().attribute(name_);
}

void TimedPlan::execute_in_full(Execution& execute) {
  const Inputs& inputs = case_.changing().stage(*case_.unseen().source().inputs);
  WatchedSteps watched(*this);
  const Verdict verdict = case_.unseen().check(backend_, &watched, &inputs);
  read_device_time();
  check_inputs();
  case_.changing().restore();
  // Of data that were drawn nobody knows whether they can be judged: those of the case line were.
  NoSpeedReason failure = verdict.status == Status::inconclusive ? NoSpeedReason{} : no_speed_of(verdict);
  if (!failure.empty() && wrong_.empty()) {
    if (failure.kind == NoSpeed::wrong_result) failure.kind = NoSpeed::wrong_while_timed;
    wrong_ = {failure.kind, "while it was timed, with other data, " + failure.text};
  }
  error_over_bound_ = std::max(error_over_bound_, verdict.error_over_bound.value_or(0));
  execute.upload = verdict.seconds.upload;
  execute.run = verdict.seconds.run;
  execute.download = verdict.seconds.download;
}

/// Of the last run.
void TimedPlan::read_device_time() {
  guarded([&] {
    if (const auto time = plan_->device_time()) device_ += std::chrono::duration<double>(*time).count();
  });
}

void TimedPlan::run_cold(ColdCaches& caches) {
  attempt([&] {
    const double seconds = execute(SampleCheck::at_rows, &caches).run;
    if (wrong_.empty()) steps_.cold.push_back(seconds);
  });
  check_inputs();
  rest();
}

/// Decided when the run is over.
bool TimedPlan::is_checked(SampleCheck check) const {
  if (check != SampleCheck::by_chance) return check != SampleCheck::away;
  return random_bits() % static_cast<std::uint64_t>(std::max<std::int64_t>(runs_, 1)) < kLooks;
}

TimedPlan::Execution TimedPlan::execute(SampleCheck check, ColdCaches* evicted) {
  Execution execute;
  const bool probed = check == SampleCheck::with_probes;
  GuardedOutputs &outputs = case_.outputs(), &more = case_.more_outputs();
  if (probed) {  // what the plan holds of the run before
    outputs.reset();
    guarded([&] { plan_->download(outputs.views()); });
  }
  const Inputs& inputs = case_.changing().next();
  const double cpu_before = process_cpu_seconds();
  execute.upload = guarded([&] { plan_->upload(inputs); });
  execute.upload_cpu = process_cpu_seconds() - cpu_before;
  Early early;
  if (probed) {
    more.reset();
    early.seconds = guarded([&] { plan_->download(more.views()); });
    early.changed = !same_bits(outputs, more);
  }
  if (evicted) evicted->evict();
  if (!cpu_) cpu_.emplace();
  const double own = thread_cpu_seconds(), all = cpu_->own();
  const Stopwatch outer;
  cpu_->begin_run();
  execute.run = guarded([&] { plan_->run(); });
  cpu_->end_run();
  wall_ += outer.seconds();
  own_cpu_ += thread_cpu_seconds() - own;
  execute.run_cpu = cpu_->own() - all;
  read_device_time();
  if (!is_checked(check) || !wrong_.empty()) return execute;

  const double since = outer.seconds();
  const StepSamples::Cost download = fetch(outputs, execute.fetched);
  execute.fetched.since = since;
  execute.download = download.seconds;
  execute.download_cpu = download.cpu;
  if (wrong_.empty()) check_sample(inputs, early, probed, execute);
  return execute;
}

void TimedPlan::check_sample(const Inputs& inputs, const Early& early, bool probed, const Execution& execute) {
  GuardedOutputs &outputs = case_.outputs(), &more = case_.more_outputs();
  const double cpu = other_threads_cpu_seconds();
  const Stopwatch watch;
  if (!case_.changing().intact()) {
    wrong_ = changes_inputs();
    return;
  }
  const SampleRows rows = case_.expected_rows(standard_, random_bits());
  const SampleVerdict verdict = rows.judge(outputs);
  steps_.cpu_after.push_back(other_threads_cpu_seconds() - cpu);
  steps_.after.push_back(watch.seconds());
  error_over_bound_ = std::max(error_over_bound_, verdict.error_over_bound);
  if (!verdict.wrong.empty()) {
    wrong_ = describe_wrong(verdict.wrong, rows);
    return;
  }
  seen_.insert(fingerprint(outputs));
  // What changed with the upload and is right already was computed by somebody else than run.
  if (early.changed && rows.judge(more).wrong.empty()) {
    const bool by_download = early.seconds > execute.upload;
    wrong_ = {NoSpeed::result_before_run,
              fmt::format("works outside run: its result was there before run, after {} of {:.3f} ms (run: {:.3f} ms)",
                          by_download ? "a download" : "an upload",
                          (by_download ? early.seconds : execute.upload) * 1e3, execute.run * 1e3)};
    return;
  }
  StepSamples::Cost again;
  fetch(more, again);
  if (!probed) {
    steps_.fetched.push_back({execute.download, execute.download_cpu});
    steps_.waited.push_back(
        {execute.fetched.seconds - again.seconds, execute.fetched.cpu - again.cpu, execute.fetched.since});
  }
  if (wrong_.empty() && !same_bits(outputs, more)) {
    wrong_ = {NoSpeed::result_after_run, "its output changed after run had returned"};
  }
  // Drawn after the run, so that nothing before it can tell.
  const bool repeats = steps_.repeated.size() < kRepeats && random_bits() % 4 != 0;
  if (repeats || suspected_) time_the_same_again(inputs, execute);
}

/// New data and the same once more, in batches where one run is too short to tell.
void TimedPlan::time_the_same_again(const Inputs& inputs, const Execution& execute) {
  const auto run_on = [&](const Inputs& data) {
    guarded([&] { plan_->upload(data); });
    const double before = process_cpu_seconds();
    const double seconds = guarded([&] { plan_->run(); });
    return StepSamples::Cost{seconds, process_cpu_seconds() - before};
  };
  const auto add = [](StepSamples::Cost& sum, const StepSamples::Cost& one) {
    sum.seconds += one.seconds;
    sum.cpu += one.cpu;
  };
  StepSamples::Repeat repeat{{execute.run, execute.run_cpu}, run_on(inputs)};
  for (int n = 1; n < kMostInBatch && repeat.fresh.seconds < kBatch && wrong_.empty(); ++n) {
    const Inputs& other = case_.changing().next();
    add(repeat.fresh, run_on(other));
    add(repeat.same, run_on(other));
  }
  steps_.repeated.push_back(repeat);
}

/// Fills the outputs with junk and downloads into them. Returns the time of the download alone.
StepSamples::Cost TimedPlan::fetch(GuardedOutputs& outputs, StepSamples::Cost& cost) {
  const Stopwatch watch;
  const double cpu = process_cpu_seconds();
  outputs.reset();
  const double before = process_cpu_seconds();
  const double seconds = guarded([&] { plan_->download(outputs.views()); });
  const double after = process_cpu_seconds();
  cost = {watch.seconds(), after - cpu};
  return {seconds, after - before};
}

NoSpeedReason TimedPlan::describe_wrong(const std::string& what, const SampleRows& rows) {
  GuardedOutputs& outputs = case_.outputs();
  const bool earlier = seen_.contains(fingerprint(outputs));
  if (completed_later(rows)) return late();
  if (earlier) return {NoSpeed::earlier_result, "run gave the result of earlier inputs: " + what};
  return {NoSpeed::wrong_while_timed, "right before the timing, wrong while it was timed: " + what};
}

bool TimedPlan::completed_later(const SampleRows& rows) {
  std::this_thread::sleep_for(kLater);
  case_.more_outputs().reset();
  try {
    guarded([&] { plan_->download(case_.more_outputs().views()); });
  } catch (const std::exception&) {
    return false;  // the reason that brought us here is told
  }
  return rows.judge(case_.more_outputs()).wrong.empty();
}

void TimedPlan::judge(const MachineLimits& limits) {
  if (!wrong_.empty()) return;
  constexpr int kMostSamples = 12;
  constexpr double kSeconds = 3;
  const Stopwatch watch;
  for (int n = 0; n < kUnannounced && steps_.fetched.size() < kUnannounced && wrong_.empty() && !interrupted; ++n) {
    begin_sample(1, 0);
    probed_ = false;
    run_once();
    end_sample();
    rest();
  }
  suspected_ = !untimed_work(steps_, limits, Evidence::suspicion).empty();
  for (int n = 0; suspected_ && n < kMostSamples && (n < 2 || watch.seconds() < kSeconds) && wrong_.empty(); ++n) {
    begin_sample(planned_, 0);
    probed_ = n % 2 != 0;
    while (at_ < runs_ && wrong_.empty()) run_once();
    end_sample();
    rest();
  }
  if (wrong_.empty()) wrong_ = untimed_work(steps_, limits, Evidence::proof);
}

}  // namespace attest
