#include "harness/run/check_run.h"

#include <fmt/format.h>

#include <future>
#include <new>
#include <utility>

#include "harness/base/crash_message.h"
#include "harness/base/fingerprint.h"
#include "harness/base/interrupted.h"
#include "harness/base/output_file.h"
#include "harness/base/parallel.h"
#include "harness/cases/long_case.h"
#include "harness/cases/memory.h"
#include "harness/isolation/isolated_backend.h"
#include "harness/probe/probe.h"
#include "harness/verdict/bitwise.h"
#include "harness/verdict/committed_lists.h"
#include "harness/verdict/parameters.h"
#include "harness/verdict/plan_walk.h"
#include "harness/verdict/prepared_case.h"
#include "harness/verdict/refusal_lists.h"
#include "reference/case_line.h"

namespace attest {

namespace {

/// Of one backend and cause: the first few tell where it is wrong, and a run may have thousands.
constexpr int kMostErrorMaps = 8;

/// Cases up to this size are prepared while the one before is checked, and isolated backends check them side by side:
/// two sets of inputs and an output for each backend are in memory then.
constexpr double kSmallCaseBytes = 64 << 20;

bool is_small(const Case& source) { return memory_needed(source.problem) <= kSmallCaseBytes; }

/// The same backend in sets made for other numbers of threads.
std::vector<Backend*> made_for_others(const std::vector<BackendSet>& other_threads, const std::string& name) {
  std::vector<Backend*> others;
  for (const BackendSet& set : other_threads) {
    for (Backend* other : set.all()) {
      if (other->identity().name == name) others.push_back(other);
    }
  }
  return others;
}

/// A right result again in other ways: for facts about its bits, and with more threads than cores. A backend that fails
/// here was right before: that it fails now is its verdict.
void run_again(const PreparedCase& prepared, Backend& backend, const std::vector<BackendSet>& other_threads, bool once,
               bool bitwise, Verdict& verdict) {
  const Problem& p = prepared.problem();
  const bool crowded = !once && state_steps(p).companions;
  if (!bitwise && !crowded) return;
  const std::vector<Backend*> others = made_for_others(other_threads, verdict.backend);
  const WorkUnderWay work(verdict.backend, verdict.case_line);
  try {
    if (bitwise) {
      verdict.bitwise =
          bitwise_facts(backend, others, p, prepared.inputs(),
                        [&](const Backend& whose, const Call& call, const Inputs& inputs, const GuardedOutputs& outputs,
                            const std::string& how) { prepared.require_right(whose, call, inputs, outputs, how); });
    } else if (!others.empty()) {
      GuardedOutputs outputs(p);
      walk_once(*others.back(), p, prepared.inputs(), outputs);
      prepared.require_right(*others.back(), p, prepared.inputs(), outputs, "with more threads than cores");
    }
  } catch (const CaseFault& fault) {
    verdict.status = fault.status();
    verdict.cause = fault.cause();
    verdict.reason = fault.what();
  } catch (const std::exception& error) {
    verdict.status = Status::fail;
    verdict.cause = "threw";
    verdict.reason = std::string("threw when run again: ") + error.what();
  } catch (...) {
    verdict.status = Status::fail;
    verdict.cause = "threw";
    verdict.reason = "threw something that is no std::exception when run again";
  }
}

}  // namespace

/// What is to do for one case.
struct CheckRun::Task {
  const CaseList* list = nullptr;
  const Case* source = nullptr;
  std::size_t number = 0;  ///< among all cases, from 0
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
      shard_(settings_.shard),
      own_(own_cases(shard_, cases_)) {}

CheckRun::~CheckRun() = default;

CheckOutcome CheckRun::run() {
  begin();
  std::optional<Task> ahead;
  std::size_t number = 0;
  for (const CaseList& list : cases_) {
    for (const Case& source : list.cases) {
      if (!own_[number++]) continue;
      std::optional<Task> task = std::exchange(ahead, plan(list, source, number - 1));
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
  info.conditions = settings_.conditions;
  info.unavailable = backends_.unavailable();
  for (Backend* backend : backends_.all()) info.backends.push_back(identity_of(*backend));
  count_wanted(info);
  wanted_ = info.verdicts;
  for (auto& report : reports_) report->begin(info);
}

/// What there is to do for a case, and its start: inputs, reference and bounds in a thread beside the backends.
CheckRun::Task CheckRun::plan(const CaseList& list, const Case& source, std::size_t number) const {
  Task task;
  task.number = number;
  task.list = &list;
  task.source = &source;
  const auto remembered = [&](Backend* backend, const std::string& name) {
    const Verdict* before = earlier_.find(list.suite, source.label, source.content, name);
    if (!before) return false;
    Verdict verdict = *before;
    verdict.dtype = source.problem.dtype;
    if (source.from_file) verdict.call_line = print_case(source.problem);
    if (verdict.status == Status::suspect) {  // the list of waivers may have lost the case since
      verdict.waiver.clear();
      apply_waiver(verdict);
    }
    task.remembered.emplace_back(backend, std::move(verdict));
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
  for (auto& [backend, verdict] : task.remembered) {
    earlier_.take(verdict);
    record(task, backend, std::move(verdict));
  }
  if (!task.prepared.valid()) return;
  if (const double work = multiply_adds_of(task.source->problem); work >= kLongMultiplyAdds) {
    for (auto& report : reports_) report->long_case(task.source->label, work);
  }
  std::unique_ptr<PreparedCase> prepared;
  try {
    prepared = task.prepared.get();
  } catch (const std::bad_alloc&) {
    unprepared_.push_back(task.source->label + ": there is not enough memory for it; make it smaller");
    return;
  }
  if (settings_.once) prepared->run_once();
  prepared->map_failures();
  if (task.reference) record(task, nullptr, prepared->check_reference());
  // Workers hardly use the cores that they have: most of a small case is waiting for one another.
  const bool side_by_side = settings_.isolated && !settings_.fail_fast && is_small(*task.source);
  const std::size_t together = side_by_side ? task.backends.size() : 1;
  for (std::size_t first = 0; first < task.backends.size() && !stop(); first += together) {
    std::vector<Verdict> verdicts(together);
    parallel_for(together, settings_.threads, [&](std::size_t n) {
      Backend& backend = *task.backends[first + n];
      verdicts[n] = prepared->check(backend);
      if (verdicts[n].status == Status::pass) {
        run_again(*prepared, backend, other_threads_, settings_.once, settings_.bitwise, verdicts[n]);
      }
    });
    for (std::size_t n = 0; n < together; ++n) {
      // Whoever interrupts may end workers, too: that is no verdict.
      const bool ended = verdicts[n].status == Status::crashed || verdicts[n].status == Status::timeout;
      if (!(interrupted && ended)) record(task, task.backends[first + n], std::move(verdicts[n]));
    }
  }
}

void CheckRun::record(const Task& task, Backend* backend, Verdict verdict) {
  verdict.suite = task.list->suite;
  verdict.content = task.source->content;
  verdict.number = static_cast<std::int64_t>(task.number) + 1;
  if (verdict.error_map && ++error_maps_[verdict.backend + ": " + verdict.cause] > kMostErrorMaps)
    verdict.error_map.reset();
  counts_.add(verdict);
  if (is_failure(verdict) && backend) failures_.remember(*task.source, *backend, verdict);
  for (auto& report : reports_) report->verdict(verdict);
  if (task.list->committed) committed_.push_back(std::move(verdict));
}

/// With a whole committed suite every backend's arithmetic is probed, by one of its shards: the bounds stand on it.
std::vector<std::string> CheckRun::false_statements() const {
  std::vector<std::string> list;
  if (committed_.empty() || interrupted || !settings_.filter.empty() || !shard_.is_first()) return list;
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

std::vector<std::string> CheckRun::late_faults() const {
  std::vector<std::string> list;
  const auto look_at = [&](const BackendSet& set) {
    for (const Backend* backend : set.all()) {
      try {
        settle(*backend);
      } catch (const CaseFault& fault) {
        list.push_back(fmt::format("{}, after its last case: {}", backend->identity().name, fault.what()));
      }
    }
  };
  look_at(backends_);
  for (const BackendSet& set : other_threads_) look_at(set);
  return list;
}

/// As many as an uninterrupted run has, and all shards together.
void CheckRun::count_wanted(RunInfo& info) const {
  Fingerprint selected;
  selected.add(settings_.filter + '\n');
  std::size_t number = 0;
  for (const CaseList& list : cases_) {
    for (const Case& source : list.cases) {
      const bool here = own_[number++];
      info.cases += here;
      // A file's name may have been another folder's on another machine.
      const std::string name = source.from_file ? source.content : source.label;
      selected.add(list.suite + '\n' + name + '\n');
      const auto want = [&](const std::string& backend) {
        if (!filter_.keeps(backend + " " + source.label)) return;
        ++info.selection.verdicts[backend];
        info.verdicts += here;
      };
      if (source.golden) want("reference");
      for (const Backend* backend : backends_.all()) want(backend->identity().name);
    }
  }
  info.selection.cases = number;
  info.selection.fingerprint = selected.text();
  info.selection.shard = settings_.shard;
}

CheckOutcome CheckRun::finish() {
  const auto stage = [&](const char* what) {
    for (auto& report : reports_) report->stage(what);
  };
  if (settings_.shrink && !interrupted) {
    if (counts_.failures() > 0) stage("making the first failures small");
    failures_.shrink_all(settings_.threads, settings_.shrunk_folder, [&](const Verdict& failure, const Verdict& small) {
      for (auto& report : reports_) report->shrunk(failure, small);
    });
  }
  CheckOutcome outcome;
  outcome.counts = counts_;
  if (settings_.compare_refusals) outcome.problems = compare_refusals(committed_);
  stage("what the backends state, and what their last plans left");
  for (std::string& lie : false_statements()) outcome.problems.push_back(std::move(lie));
  if (!interrupted) {
    for (std::string& fault : late_faults()) outcome.problems.push_back(std::move(fault));
  }
  outcome.problems.insert(outcome.problems.end(), unprepared_.begin(), unprepared_.end());
  outcome.notes = failures_.notes();
  outcome.unshrunk_files = failures_.unshrunk_files();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - started_;
  outcome.interrupted = interrupted;
  const Ending ending{outcome.interrupted, wanted_, earlier_.taken(), earlier_.left()};
  for (auto& report : reports_) {
    try {
      report->ending(ending);
      report->end(counts_, seconds.count(), outcome.problems);
    } catch (const OutputError& error) {  // the table is printed all the same
      outcome.unwritten.emplace_back(error.what());
    }
  }
  if (outcome.unwritten.empty()) earlier_.remove_parts();
  outcome.committed = std::move(committed_);
  return outcome;
}

}  // namespace attest
