#include "harness/speed/timing/timed_apart.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <new>

#include "harness/backends/isolation/isolated_backend.h"
#include "harness/base/interrupted.h"
#include "harness/base/raw_clock.h"
#include "harness/base/stopwatch.h"
#include "harness/speed/timing/no_speed_of.h"
#include "harness/speed/timing/round_trip.h"
#include "harness/speed/trust/untimed_work.h"
#include "harness/verdict/plan_execution.h"

namespace attest {
namespace {

/// For the pools of libraries, which may turn for a fifth of a second when they are loaded.
constexpr std::chrono::milliseconds kMostUntilRest{1000};
constexpr int kEmptyRequests = 50;           ///< before the first run; one more before each sample
constexpr std::uint64_t kLooksByChance = 2;  ///< runs of a sample that are looked at by chance, on average
/// What a sample may take altogether, in units of what its runs are meant to take.
constexpr double kShareOfSample = 1.4;
/// A worker is another process, and stopped before: of its empty requests so much is believed, in units of a round trip
/// to a thread of this process. A stranger could make them slow, and what they take is subtracted.
constexpr double kShareOfRoundTrip = 2;
/// One run in so many is looked at before it, where each step is timed by itself: the result can't be there yet.
constexpr std::uint64_t kOneLookedAtBefore = 3;
/// The shortest time that is told: less than a clock and a message can tell.
constexpr double kShortest = 1e-7;

}  // namespace

OneRequest one_request_of(const Backend& backend) {
  const bool on_accelerator = stated_device(backend.identity()) == StatedDevice::accelerator;
  return on_accelerator && sandbox_of(backend).empty() ? OneRequest::step : OneRequest::call;
}

TimedApart::TimedApart(Backend& backend, TimedCase& shared, MachineWatch& watch, OneRequest one_request)
    : backend_(backend), shared_(shared), watch_(watch), name_(backend.identity().name), one_request_(one_request) {
  attempt([&] {
    const PreparedCase& as_written = shared_.as_written();
    const Answers answers = as_written.answers_of(backend_);
    if (answers.refusal) {
      wrong_ = {NoSpeed::refused, "refused: " + answers.refusal->reason};
      return;
    }
    standard_ = standard_of(answers);
    plan_ = make_plan(backend_, shared_.problem());
    apart_ = dynamic_cast<RunsApart*>(plan_.get());
    if (!apart_) throw BackendError("it has no process of its own");
    const Inputs& inputs = shared_.changing().stage(*as_written.source().inputs);
    shared_.outputs().reset();
    apart_->give(inputs, shared_.outputs().views());
    steps_.prepare = apart_->prepare_seconds();
    steps_.first_run = apart_->take_steps(ApartSteps::all).seconds;
    steps_.workspace = static_cast<double>(plan_->workspace_bytes());
    const Verdict verdict = as_written.check(backend_, plan_.get(), &inputs);
    wrong_ = no_speed_of(verdict);
    if (!wrong_.empty()) return;
    error_over_bound_ = verdict.error_over_bound.value_or(0);
    ulps_ = ulps_of_output(verdict.accuracy);
    apart_->await_rest(kMostUntilRest);
    empty_ = kShareOfRoundTrip * fastest_round_trip();
    for (int n = 0; n < kEmptyRequests; ++n) empty_ = std::min(empty_, apart_->take_steps(ApartSteps::none).seconds);
  });
  shared_.changing().restore();
}

template <class Steps>
void TimedApart::attempt(const Steps& steps) {
  try {
    steps();
  } catch (const CaseFault& fault) {
    wrong_ = no_speed_of(fault);
  } catch (const std::bad_alloc&) {
    wrong_ = {NoSpeed::out_of_memory, "ran out of memory"};
  } catch (const std::exception& error) {
    wrong_ = {NoSpeed::threw, std::string("threw: ") + error.what()};
  }
}

ApartCost TimedApart::timed(ApartSteps steps) {
  const ApartCost cost = apart_->take_steps(steps);
  cpu_ += cost.cpu;
  wall_ += cost.seconds;
  return {std::max(cost.seconds - empty_, kShortest), cost.cpu};
}

double TimedApart::take_all_steps(ColdCaches* evicted) {
  if (evicted) evicted->evict();
  return timed(ApartSteps::all).seconds;
}

double TimedApart::take_each_step(ColdCaches* evicted) {
  const ApartCost upload = timed(ApartSteps::upload);
  if (random_bits() % kOneLookedAtBefore == 0) look_before_run();
  if (evicted) evicted->evict();
  const double run = timed(ApartSteps::run).seconds;
  const ApartCost download = timed(ApartSteps::download);
  steps_.upload.push_back(upload.seconds);
  steps_.uploaded.push_back({upload.seconds, upload.cpu});
  steps_.download.push_back(download.seconds);
  steps_.fetched.push_back({download.seconds, download.cpu});
  return run;
}

/// What is right already was computed by somebody else than run().
void TimedApart::look_before_run() {
  apart_->take_steps(ApartSteps::download);
  shared_.more_outputs().reset();
  apart_->take(shared_.more_outputs().views());
  if (!rows_of(Look::at_rows).judge(shared_.more_outputs()).wrong.empty()) return;
  wrong_ = {NoSpeed::result_before_run, "works outside run: its result was there before run"};
}

SampleRows TimedApart::rows_of(Look look) {
  const PreparedCase& unseen = shared_.unseen();
  if (look == Look::in_full) return {shared_.problem(), unseen.inputs(), unseen.expectation(), standard_};
  return shared_.expected_rows(standard_, random_bits());
}

double TimedApart::run_once(Look look, ColdCaches* evicted) {
  double seconds = 0;
  attempt([&] {
    ChangingInputs& changing = shared_.changing();
    const bool in_full = look == Look::in_full;
    const Inputs& inputs = in_full ? changing.stage(*shared_.unseen().source().inputs) : changing.next();
    shared_.outputs().reset();
    apart_->give(inputs, shared_.outputs().views());
    seconds = one_request_ == OneRequest::step && !in_full ? take_each_step(evicted) : take_all_steps(evicted);
    apart_->take(shared_.outputs().views());
    steps_.run.push_back(seconds);
    if (look == Look::away || !wrong_.empty()) return;
    if (const OutputFault fault = shared_.outputs().inspect(); !fault.empty()) {
      wrong_ = {NoSpeed::wrong_while_timed, fault.reason + " while it was timed"};
    } else {
      compare(rows_of(look), in_full ? "with other data" : "right before the timing");
    }
  });
  if (look == Look::in_full) shared_.changing().restore();
  return wrong_.empty() ? seconds : 0;
}

void TimedApart::compare(const SampleRows& rows, const char* when) {
  const SampleVerdict verdict = rows.judge(shared_.outputs());
  error_over_bound_ = std::max(error_over_bound_, verdict.error_over_bound);
  if (verdict.wrong.empty()) return;
  wrong_ = {NoSpeed::wrong_while_timed, std::string(when) + ", wrong while it was timed: " + verdict.wrong};
}

std::int64_t TimedApart::warm_up(double seconds) {
  double run = std::numeric_limits<double>::infinity(), each = run, check = 0;
  for (int n = 0; n < 2 && wrong_.empty() && (n == 0 || run < seconds); ++n) {
    const Stopwatch watch;
    run = std::min(run, run_once(Look::at_rows));
    check = watch.seconds() - run;
  }
  for (int n = 0; n < 2 && wrong_.empty() && run < seconds; ++n) {
    const Stopwatch watch;
    run = std::min(run, run_once(Look::away));
    each = std::min(each, watch.seconds());
  }
  if (!wrong_.empty() || run >= seconds) return 1;
  const double affordable = (kShareOfSample * seconds - check) / std::max(each, kShortest);
  return static_cast<std::int64_t>(std::clamp(std::min(std::ceil(seconds / run), affordable), 1.0, 1e7));
}

TakenSample TimedApart::sample(std::int64_t runs, int in_full) {
  TakenSample taken;
  watch_.begin();
  double before = 0;
  attempt([&] {
    before = apart_->cpu_seconds();
    empty_ = std::min(empty_, apart_->take_steps(ApartSteps::none).seconds);
  });
  cpu_ = wall_ = 0;
  for (std::int64_t n = 1; n <= runs && !interrupted && wrong_.empty(); ++n) {
    const bool last = n == runs;
    const bool full = last && in_full > 0 && random_bits() % static_cast<std::uint64_t>(in_full) == 0;
    const bool looked_at = last || random_bits() % static_cast<std::uint64_t>(runs) < kLooksByChance;
    taken.seconds += run_once(full ? Look::in_full : looked_at ? Look::at_rows : Look::away);
    taken.checked_in_full = full;
  }
  if (wall_ > 0) {
    steps_.processors.push_back(cpu_ / wall_);
    steps_.threads.push_back(cpu_ / wall_);
  }
  taken.cpu = cpu_;
  taken.disturbance = watch_.end();
  attempt([&] {  // the worker is no disturbance
    Disturbance& d = taken.disturbance;
    d.others = std::max(0.0, d.others - (apart_->cpu_seconds() - before) / d.seconds);
  });
  return taken;
}

void TimedApart::run_cold(int threads) {
  ColdCaches caches(threads);
  const double seconds = run_once(Look::at_rows, &caches);
  if (wrong_.empty()) steps_.cold.push_back(seconds);
}

void TimedApart::judge(const MachineLimits& limits) {
  if (wrong_.empty()) wrong_ = untimed_work(steps_, limits);
}

}  // namespace attest
