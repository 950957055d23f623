#include "harness/run/check_run.h"

#include <fmt/format.h>

#include <future>
#include <utility>

#include "harness/base/interrupted.h"
#include "harness/base/parallel.h"
#include "harness/cases/memory.h"
#include "harness/probe/probe.h"
#include "harness/verdict/bitwise.h"
#include "harness/verdict/committed_lists.h"
#include "harness/verdict/prepared_case.h"

namespace attest {

namespace {

/// Cases up to this size are prepared while the one before is checked, and isolated backends check them side by side:
/// two sets of inputs and an output for each backend are in memory then.
constexpr double kSmallCaseBytes = 64 << 20;

bool is_small(const Case& source) { return memory_needed(source.problem) <= kSmallCaseBytes; }

/// A backend that fails here was right before: that it fails now is its verdict.
void add_bitwise(const PreparedCase& prepared, Backend& backend, const std::vector<BackendSet>& other_threads,
                 Verdict& verdict) {
  std::vector<Backend*> others;
  for (const BackendSet& set : other_threads) {
    for (Backend* other : set.all()) {
      if (other->identity().name == verdict.backend) others.push_back(other);
    }
  }
  try {
    verdict.bitwise = bitwise_facts(backend, others, prepared.problem(), prepared.inputs());
  } catch (const CaseFault& fault) {
    verdict.status = fault.status();
    verdict.cause = fault.cause();
    verdict.reason = fault.what();
  } catch (const std::exception& error) {
    verdict.status = Status::fail;
    verdict.cause = "threw";
    verdict.reason = std::string("threw when run again: ") + error.what();
  }
}

}  // namespace

/// What is to do for one case.
struct CheckRun::Task {
  const CaseList* list = nullptr;
  const Case* source = nullptr;
  std::vector<Backend*> backends;
  std::vector<std::pair<Backend*, Verdict>> remembered;  ///< of the run that is resumed
  bool reference = false;                                ///< is held against the file's results
  std::future<std::unique_ptr<PreparedCase>> prepared;
};

CheckRun::CheckRun(CheckSettings settings, std::vector<CaseList> cases, const BackendSet& backends,
                   const std::vector<BackendSet>& other_threads, EarlierRun earlier,
                   std::vector<std::unique_ptr<Report>> reports)
    : settings_(std::move(settings)),
      cases_(std::move(cases)),
      backends_(backends),
      other_threads_(other_threads),
      earlier_(std::move(earlier)),
      reports_(std::move(reports)),
      filter_(settings_.filter),
      shard_(settings_.shard) {}

CheckRun::~CheckRun() = default;

CheckOutcome CheckRun::run() {
  begin();
  std::optional<Task> ahead;
  std::size_t number = 0;
  for (const CaseList& list : cases_) {
    for (const Case& source : list.cases) {
      if (!shard_.holds(number++)) continue;
      std::optional<Task> task = std::exchange(ahead, plan(list, source));
      if (task) check(*task);
      if (stop()) return finish();
    }
  }
  if (ahead) check(*ahead);
  return finish();
}

bool CheckRun::stop() const { return interrupted || (settings_.fail_fast && counts_.failures() > 0); }

void CheckRun::begin() {
  started_ = std::chrono::steady_clock::now();
  RunInfo info;
  info.command = settings_.command;
  info.unavailable = backends_.unavailable();
  for (Backend* backend : backends_.all()) info.backends.push_back(backend->identity());
  for (const CaseList& list : cases_) info.cases += list.cases.size();
  info.cases = shard_.count(info.cases);
  for (auto& report : reports_) report->begin(info);
}

/// What there is to do for a case, and its start: inputs, reference and bounds in a thread beside the backends.
CheckRun::Task CheckRun::plan(const CaseList& list, const Case& source) const {
  Task task;
  task.list = &list;
  task.source = &source;
  const auto remembered = [&](Backend* backend, const std::string& name) {
    std::optional<Verdict> before = earlier_.find(list.suite, source.label, name);
    if (!before) return false;
    before->dtype = source.problem.dtype;
    task.remembered.emplace_back(backend, std::move(*before));
    return true;
  };
  task.reference = source.golden && filter_.keeps("reference " + source.label) && !remembered(nullptr, "reference");
  for (Backend* backend : backends_.all()) {
    const std::string name = backend->identity().name;
    if (filter_.keeps(name + " " + source.label) && !remembered(backend, name)) task.backends.push_back(backend);
  }
  if (task.backends.empty() && !task.reference) return task;
  const auto when = is_small(source) ? std::launch::async : std::launch::deferred;
  task.prepared = std::async(when, [&source, producers = producers_of(source, task.backends), this] {
    return std::make_unique<PreparedCase>(source, producers, settings_.threads);
  });
  return task;
}

void CheckRun::check(Task& task) {
  for (auto& [backend, verdict] : task.remembered) record(task, backend, std::move(verdict));
  if (!task.prepared.valid()) return;
  const std::unique_ptr<PreparedCase> prepared = task.prepared.get();
  if (task.reference) record(task, nullptr, prepared->check_reference());
  // Workers hardly use the cores that they have: most of a small case is waiting for one another.
  const bool side_by_side = settings_.isolated && !settings_.fail_fast && is_small(*task.source);
  const std::size_t together = side_by_side ? task.backends.size() : 1;
  for (std::size_t first = 0; first < task.backends.size() && !stop(); first += together) {
    std::vector<Verdict> verdicts(together);
    parallel_for(together, settings_.threads, [&](std::size_t n) {
      Backend& backend = *task.backends[first + n];
      verdicts[n] = prepared->check(backend);
      if (settings_.bitwise && verdicts[n].status == Status::pass) {
        add_bitwise(*prepared, backend, other_threads_, verdicts[n]);
      }
    });
    for (std::size_t n = 0; n < together; ++n) record(task, task.backends[first + n], std::move(verdicts[n]));
  }
}

void CheckRun::record(const Task& task, Backend* backend, Verdict verdict) {
  verdict.suite = task.list->suite;
  counts_.add(verdict);
  if (is_failure(verdict) && backend) failures_.remember(*task.source, *backend, verdict);
  for (auto& report : reports_) report->verdict(verdict);
  if (task.list->committed) committed_.push_back(std::move(verdict));
}

/// With a whole committed suite every backend's arithmetic is probed: the bounds stand on it.
std::vector<std::string> CheckRun::false_statements() const {
  std::vector<std::string> list;
  if (committed_.empty() || interrupted || !settings_.filter.empty() || !settings_.shard.empty()) return list;
  for (Backend* backend : backends_.all()) {
    const std::string name = backend->identity().name;
    for (const ProbedStatement& f : probe_arithmetic(*backend)) {
      if (f.holds) continue;
      list.push_back(fmt::format("{} says of its {}: {}; observed: {} (attest list arithmetic --backend {})", name,
                                 f.name, f.stated, f.observed, name));
    }
  }
  return list;
}

CheckOutcome CheckRun::finish() {
  if (settings_.shrink && !interrupted) {
    failures_.shrink_all(settings_.threads, settings_.shrunk_folder, [&](const Verdict& failure, const Verdict& small) {
      for (auto& report : reports_) report->shrunk(failure, small);
    });
  }
  CheckOutcome outcome;
  outcome.counts = counts_;
  outcome.problems = compare_refusals(committed_);
  for (std::string& lie : false_statements()) outcome.problems.push_back(std::move(lie));
  outcome.notes = failures_.notes();
  outcome.unshrunk_files = failures_.unshrunk_files();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - started_;
  for (auto& report : reports_) report->end(counts_, seconds.count(), outcome.problems);
  outcome.interrupted = interrupted;
  if (!outcome.interrupted) earlier_.remove_parts();
  return outcome;
}

}  // namespace attest
