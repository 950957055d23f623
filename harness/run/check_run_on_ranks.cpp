// A run of `check` on the ranks of a job.
#include <algorithm>
#include <set>
#include <stdexcept>
#include <utility>

#include "harness/base/interrupted.h"
#include "harness/cases/case_cost.h"
#include "harness/run/check_run.h"

namespace attest {

/// The cases that there is something to do for. What begins last should be short: all ranks end together then.
std::vector<std::size_t> CheckRun::costly_first() const {
  std::vector<std::pair<double, std::size_t>> work;
  for (std::size_t number = 0; number < places_.size(); ++number) {
    if (own_[number] && has_work(number)) work.emplace_back(cost_of(places_[number].source->problem), number);
  }
  std::stable_sort(work.begin(), work.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::size_t> order;
  for (const auto& [cost, number] : work) order.push_back(number);
  return order;
}

/// As a run by itself finds them.
void CheckRun::put_in_order(std::vector<Verdict>& verdicts) const {
  std::map<std::string, std::size_t> places;
  for (const Backend* backend : backends_.all()) places.try_emplace(backend->identity().name, places.size() + 1);
  const auto place = [&](const Verdict& v) {
    const auto found = places.find(v.backend);
    return std::pair(v.number, found == places.end() ? 0 : found->second);
  };
  std::sort(verdicts.begin(), verdicts.end(), [&](const Verdict& a, const Verdict& b) { return place(a) < place(b); });
}

CheckOutcome CheckRun::run(Ranks& ranks) {
  SharedCases shared;
  shared.check = [this](std::size_t number, const CaseSink& sink) { check_now(number, sink); };
  shared.exit_messages = [this] { return late_faults(); };
  if (ranks.rank() != 0) {
    CheckOutcome outcome;
    outcome.still_running = !share_cases(ranks, shared);
    outcome.interrupted = interrupted;
    return outcome;
  }

  begin();
  std::vector<Verdict> verdicts;
  std::set<std::pair<std::int64_t, std::string>> known;
  const auto arrive = [&](Verdict verdict) {
    if (verdict.number < 1 || static_cast<std::size_t>(verdict.number) > places_.size())
      throw std::runtime_error("a rank checked a case that is none of this run");
    // Of a case that the earlier run began, a rank that does not know this run checks all.
    if (!known.emplace(verdict.number, verdict.backend).second) return;
    fill_in(verdict, static_cast<std::size_t>(verdict.number) - 1);
    failed_ = failed_ || is_failure(verdict);
    for (auto& report : reports_) report->arrival(verdict);
    verdicts.push_back(std::move(verdict));
  };
  for (std::size_t number = 0; number < places_.size(); ++number) {
    if (!own_[number]) continue;
    for (Verdict& verdict : remembered(number)) {
      earlier_.take(verdict);
      arrive(std::move(verdict));
    }
  }
  shared.order = costly_first();
  shared.started = [this](std::size_t number) { announce(number); };
  shared.sink = {arrive, [this](std::string problem) { unprepared_.push_back(std::move(problem)); }};
  shared.stop = [this] { return stop(); };
  const bool complete = share_cases(ranks, shared);
  put_in_order(verdicts);
  for (Verdict& verdict : verdicts) record(std::move(verdict));
  CheckOutcome outcome = finish();
  outcome.still_running = !complete;
  return outcome;
}

}  // namespace attest
