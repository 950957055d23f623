// Failures of a run that are run again in a fresh worker.
#include <algorithm>

#include "harness/base/interrupted.h"
#include "harness/base/stopwatch.h"
#include "harness/run/check_run.h"

namespace attest {
namespace {

/// Of a backend's failures with one cause so many are run again in a fresh worker; of those that took too long fewer.
constexpr int kMostAgain = 16, kMostTimeoutsAgain = 1;
/// The first few of them so often, to tell chance from a mistake.
constexpr int kMostRepeated = 4, kRepeats = 5;
/// And no more than the first of each cause once it has taken so long: a worker may load large libraries.
constexpr double kMostSecondsAgain = 10;
/// For so many of them the earlier case is looked for that made them wrong, in so much time each.
constexpr int kMostSearches = 4;
constexpr double kSearchSeconds = 5;

}  // namespace

std::unique_ptr<Backend> CheckRun::fresh_one(const std::string& name) const {
  return settings_.once ? nullptr : backends_.fresh(name);
}

const Case* CheckRun::case_named(const std::string& label) const {
  const auto found =
      std::find_if(places_.begin(), places_.end(), [&](const Place& place) { return place.source->label == label; });
  return found == places_.end() ? nullptr : found->source;
}

void CheckRun::note_met(const Case& source, const std::string& backend) const {
  const std::lock_guard lock(met_mutex_);
  remember_case(met_[backend].cases, source);
}

/// The first failures of a cause are run again in a fresh worker, which takes a moment each.
void CheckRun::attribute_to_others(const PreparedCase& prepared, Verdict& verdict) const {
  if (settings_.once || interrupted || !verdict.steps.empty()) return;
  EarlierCases earlier;
  OriginSearch search;
  {
    const std::lock_guard lock(met_mutex_);
    Met& met = met_[verdict.backend];
    const int most = verdict.status == Status::timeout ? kMostTimeoutsAgain : kMostAgain;
    const int before = met.again[verdict.cause.text()]++;
    if (before >= most || (before > 0 && met.seconds > kMostSecondsAgain)) return;
    earlier = met.cases;
    search.repeats = before < kMostRepeated ? kRepeats : 1;
    search.seconds = met.searches < kMostSearches ? std::clamp(seconds_left(), 0.0, kSearchSeconds) : 0;
  }
  const Stopwatch spent;
  find_origin(
      verdict, prepared, earlier, [&] { return backends_.fresh(verdict.backend); }, search);
  const std::lock_guard lock(met_mutex_);
  met_[verdict.backend].seconds += spent.seconds();
  if (verdict.cause.kind == Cause::after_another_case || verdict.cause.kind == Cause::fresh_worker_only)
    ++met_[verdict.backend].searches;
}

}  // namespace attest
