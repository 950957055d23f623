#include "harness/run/check_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <future>
#include <limits>
#include <new>
#include <utility>

#include "backends/group.h"
#include "harness/backends/isolation/isolated_backend.h"
#include "harness/base/crash_message.h"
#include "harness/base/interrupted.h"
#include "harness/base/output_file.h"
#include "harness/base/parallel.h"
#include "harness/base/user_error.h"
#include "harness/cases/long_case.h"
#include "harness/cases/memory.h"
#include "harness/probe/probe.h"
#include "harness/relate/bitwise.h"
#include "harness/tuning/parameters.h"
#include "harness/verdict/committed_lists.h"
#include "harness/verdict/long_repro.h"
#include "harness/verdict/plan_execution.h"
#include "harness/verdict/prepared_case.h"
#include "harness/verdict/printed_command.h"
#include "harness/verdict/refusal_lists.h"
#include "reference/options/case_line.h"

namespace attest {

namespace {

/// Of one backend and cause: the first few tell where it is wrong, and a run may have thousands.
constexpr int kMostErrorMaps = 8;

/// Cases up to this size are prepared while those before are checked, and isolated backends check them side by side:
/// several sets of inputs and an output for each backend are in memory then.
constexpr double kSmallCaseBytes = 64 << 20;
/// So many for each thread, and so many in all: while one takes long to prepare or to check, the cores have others.
constexpr int kAheadOfEachThread = 4, kMostAhead = 16;
/// What those that are prepared may hold together.
constexpr double kMostBytesAhead = 4 * kSmallCaseBytes;

bool is_small(const Case& source) { return memory_needed(source.problem) <= kSmallCaseBytes; }

/// Looks at a right result once more. A backend that fails here was right before: that it fails now is its verdict.
void look_again(Verdict& verdict, const std::function<void()>& look) {
  const CrashContext work(verdict.backend, verdict.case_line);
  try {
    look();
  } catch (const CaseFault& fault) {
    verdict.status = fault.status();
    verdict.cause = fault.cause();
    verdict.reason = fault.what();
    verdict.repeats = fault.repeats();
  } catch (const UnusableBackend&) {
    throw;
  } catch (const BackendUnavailable&) {
    return;  // with so many threads: that is no fault of the result
  } catch (const std::exception& error) {
    verdict.status = Status::fail;
    verdict.cause = {Cause::threw};
    verdict.reason = std::string("threw when run again: ") + error.what();
  } catch (...) {
    verdict.status = Status::fail;
    verdict.cause = {Cause::threw};
    verdict.reason = "threw something that is no std::exception when run again";
  }
}

/// A right result again in other ways: for facts about its bits, and with more threads than cores.
void run_again(const PreparedCase& prepared, Backend& backend, const std::vector<Backend*>& others, bool bitwise,
               Verdict& verdict) {
  const Problem& p = prepared.problem();
  if (bitwise) {
    verdict.bitwise = bitwise_facts(
        backend, others, p, prepared.inputs(),
        [&](const Backend& whose, const Call& call, const Inputs& inputs, const GuardedOutputs& outputs, Cause cause) {
          const Answers answers = call == p.call ? prepared.answers_of(whose) : ask(whose, call);
          prepared.require_right(answers, call, inputs, outputs, cause);
        });
  } else if (!others.empty() && state_steps(p).interleaved) {
    GuardedOutputs outputs(p);
    walk_once(*others.back(), p, prepared.inputs(), outputs);
    prepared.require_right(prepared.answers_of(*others.back()), p, prepared.inputs(), outputs,
                           Cause::more_threads_than_cores);
  }
}

}  // namespace

/// What is to do for one case.
struct CheckRun::Task {
  const Case* source = nullptr;
  std::size_t number = 0;  ///< among all cases, from 0
  std::vector<Backend*> backends;
  bool reference = false;  ///< is held against the file's results
  std::future<std::unique_ptr<PreparedCase>> prepared;
  double bytes_ahead = 0;  ///< that it may hold while others are checked
  bool has_work() const { return reference || !backends.empty(); }
};

CheckRun::CheckRun(CheckSettings settings, std::vector<CaseList> cases, const BackendSet& backends,
                   const std::vector<BackendSet>& other_threads, EarlierRun earlier,
                   std::vector<std::unique_ptr<Report>> reports)
    : settings_(std::move(settings)),
      cases_(std::move(cases)),
      backends_(backends),
      other_threads_(other_threads),
      thread_checks_(backends, other_threads),
      earlier_(std::move(earlier)),
      reports_(std::move(reports)),
      filter_(settings_.filter),
      shard_(settings_.shard),
      own_(own_cases(shard_, cases_)) {
  for (const CaseList& list : cases_) {
    for (const Case& source : list.cases) places_.push_back({&list, &source});
  }
}

CheckRun::~CheckRun() = default;

CheckOutcome CheckRun::run() {
  begin();
  const CaseSink sink{[this](Verdict verdict) { record(std::move(verdict)); },
                      [this](std::string problem) { unprepared_.push_back(std::move(problem)); }};
  const auto complete = [&](Task& task) {
    for (Verdict& verdict : remembered(task.number)) {
      earlier_.take(verdict);
      record(std::move(verdict));
    }
    if (!task.has_work()) return;
    announce(task.number);
    check(task, sink);
  };
  const auto most_ahead = static_cast<std::size_t>(std::clamp(kAheadOfEachThread * settings_.threads, 1, kMostAhead));
  std::deque<Task> ahead;
  double bytes_ahead = 0;
  for (std::size_t number = 0; (number < places_.size() || !ahead.empty()) && !stop();) {
    const bool is_room = ahead.empty() || (ahead.size() <= most_ahead && bytes_ahead < kMostBytesAhead);
    if (number < places_.size() && is_room) {
      if (own_[number]) {
        prepare(ahead.emplace_back(plan(number)), true);
        bytes_ahead += ahead.back().bytes_ahead;
      }
      ++number;
      continue;
    }
    bytes_ahead -= ahead.front().bytes_ahead;
    complete(ahead.front());
    ahead.pop_front();
  }
  ahead.clear();
  return finish();
}

bool CheckRun::stop() const { return interrupted || (settings_.fail_fast && failed_) || seconds_left() <= 0; }

double CheckRun::seconds_left() const {
  if (!settings_.deadline) return std::numeric_limits<double>::infinity();
  return std::chrono::duration<double>(*settings_.deadline - std::chrono::steady_clock::now()).count();
}

RunInfo CheckRun::info() const {
  RunInfo info;
  info.command = settings_.command;
  info.conditions = settings_.conditions;
  info.unavailable = backends_.unavailable();
  for (Backend* backend : backends_.all()) info.backends.push_back(identity_of(*backend));
  count_wanted(info);
  return info;
}

void CheckRun::begin() {
  started_ = std::chrono::steady_clock::now();
  const RunInfo known = info();
  wanted_ = known.verdicts;
  for (auto& report : reports_) report->begin(known);
}

void CheckRun::announce(std::size_t number) {
  const Case& source = *places_[number].source;
  const double work = multiply_adds_of(source.problem);
  if (work < kLongMultiplyAdds) return;
  for (auto& report : reports_) report->long_case(source.label, work);
}

void CheckRun::fill_in(Verdict& verdict, std::size_t number) const {
  const auto& [list, source] = places_[number];
  verdict.suite = list->suite;
  verdict.content = source->content;
  verdict.number = static_cast<std::int64_t>(number) + 1;
  verdict.dtype = source->problem.call.dtype;
  if (source->from_file) verdict.call_line = print_case(source->problem);
}

std::vector<Verdict> CheckRun::remembered(std::size_t number) const {
  const auto& [list, source] = places_[number];
  std::vector<Verdict> found;
  const auto look_for = [&, &of = *list, &one = *source](const std::string& name) {
    if (!filter_.keeps(name + " " + one.label)) return;
    const Verdict* before = earlier_.find(of.suite, one.label, one.content, name);
    if (!before) return;
    Verdict& verdict = found.emplace_back(*before);
    fill_in(verdict, number);
    if (verdict.status != Status::suspect) return;
    verdict.waiver.clear();  // the list of waivers may have lost the case since
    apply_waiver(verdict);
  };
  if (source->golden) look_for("reference");
  for (Backend* backend : backends_.all()) look_for(backend->identity().name);
  return found;
}

/// What there is to do for a case that the earlier run did not.
CheckRun::Task CheckRun::plan(std::size_t number) const {
  const auto& [list, source] = places_[number];
  Task task;
  task.number = number;
  task.source = source;
  const auto is_wanted = [&, &of = *list, &one = *source](const std::string& name) {
    return filter_.keeps(name + " " + one.label) && !earlier_.find(of.suite, one.label, one.content, name);
  };
  task.reference = source->golden && is_wanted("reference");
  for (Backend* backend : backends_.all()) {
    if (is_wanted(backend->identity().name)) task.backends.push_back(backend);
  }
  return task;
}

/// With `ahead` a small case is begun at once: inputs, reference and bounds in a thread beside the backends.
void CheckRun::prepare(Task& task, bool ahead) const {
  if (!task.has_work()) return;
  const Case& source = *task.source;
  const bool begins = ahead && is_small(source);
  if (begins) task.bytes_ahead = memory_needed(source.problem);
  const auto when = begins ? std::launch::async : std::launch::deferred;
  task.prepared = std::async(when, [&source, asked = ask_all(source, task.backends), this]() mutable {
    return std::make_unique<PreparedCase>(source, std::move(asked), settings_.threads);
  });
}

void CheckRun::check(Task& task, const CaseSink& sink) const {
  std::unique_ptr<PreparedCase> prepared;
  try {
    prepared = task.prepared.get();
  } catch (const std::bad_alloc&) {
    sink.problem(task.source->label + ": there is not enough memory for it; make it smaller");
    return;
  }
  const auto tell = [&](Verdict verdict) {
    fill_in(verdict, task.number);
    keep_long_lines(verdict);
    sink.verdict(std::move(verdict));
  };
  if (settings_.once) prepared->run_once();
  prepared->draw_steps_by(settings_.seed);
  prepared->take_these_steps(steps_from_text(settings_.steps));
  prepared->map_failures();
  prepared->diagnose_failures([this](const std::string& backend) -> MistakeFinder& {
    const std::lock_guard<std::mutex> lock(keeping_);
    return finders_[backend];
  });
  prepared->keep_wrong_results([&, source = task.source](const Verdict& verdict, const Arithmetic& stated,
                                                         std::shared_ptr<const GuardedOutputs> outputs) {
    if (!may_be_of_statement(verdict)) return;
    const std::lock_guard<std::mutex> lock(keeping_);
    kept_[{verdict.backend, verdict.case_line}] = {source, stated, std::move(outputs)};
  });
  if (task.reference) tell(prepared->check_reference());
  // Workers hardly use the cores that they have: most of a small case is waiting for one another.
  // Backends that span a group send through the same communicator, one at a time.
  const bool distributed = std::any_of(task.backends.begin(), task.backends.end(), [](const Backend* backend) {
    return dynamic_cast<const GroupMember*>(backend) != nullptr;
  });
  const bool side_by_side = settings_.isolated && !settings_.fail_fast && !distributed && is_small(*task.source);
  const std::size_t together = side_by_side ? task.backends.size() : 1;
  for (std::size_t first = 0; first < task.backends.size() && !stop(); first += together) {
    std::vector<Verdict> verdicts(together);
    parallel_for(together, settings_.threads, [&](std::size_t n) {
      Backend& backend = *task.backends[first + n];
      verdicts[n] = prepared->check(backend);
      if (is_failure(verdicts[n])) attribute_to_others(*prepared, verdicts[n]);
      if (is_right(verdicts[n])) {
        look_again(verdicts[n], [&] {
          const std::vector<Backend*> others = find_in_each(other_threads_, verdicts[n].backend);
          if (settings_.bitwise || !settings_.once)
            run_again(*prepared, backend, others, settings_.bitwise, verdicts[n]);
          if (!settings_.once) thread_checks_.look_at(*prepared, backend);
        });
      }
      note_met(*task.source, verdicts[n].backend);
    });
    for (Verdict& verdict : verdicts) {
      // Whoever interrupts may end workers, too: that is no verdict.
      const bool ended = verdict.status == Status::crashed || verdict.status == Status::timeout;
      if (!(interrupted && ended)) tell(std::move(verdict));
    }
  }
}

bool CheckRun::has_work(std::size_t number) const { return plan(number).has_work(); }

void CheckRun::check_now(std::size_t number, const CaseSink& sink) const {
  Task task = plan(number);
  prepare(task, false);
  if (task.has_work()) check(task, sink);
}

void CheckRun::record(Verdict verdict) {
  const auto& [list, source] = places_[static_cast<std::size_t>(verdict.number) - 1];
  if (verdict.error_map && ++error_maps_[verdict.backend + ": " + verdict.cause.text()] > kMostErrorMaps)
    verdict.error_map.reset();
  counts_.add(verdict);
  earlier_.take(verdict);
  if (is_failure(verdict)) {
    failed_ = true;
    const std::lock_guard<std::mutex> lock(keeping_);
    const auto kept = kept_.find({verdict.backend, verdict.case_line});
    if (kept != kept_.end() && may_be_of_statement(verdict))
      wrong_[verdict.backend].add(std::move(kept->second));
    else
      wrong_[verdict.backend].add_unexplained();
    if (kept != kept_.end()) kept_.erase(kept);
    if (Backend* backend = backends_.find(verdict.backend)) failures_.remember(*source, *backend, verdict);
  }
  for (auto& report : reports_) report->verdict(verdict);
  if (list->committed) committed_.push_back(std::move(verdict));
}

/// Conventions by which results may be right, that the backend's own answers contradict.
std::vector<std::string> CheckRun::false_conventions() const {
  std::vector<std::string> list;
  if (interrupted || !shard_.is_first()) return list;
  for (Backend* backend : backends_.all()) {
    const Conventions stated = backend->conventions(), own;
    const bool differ = std::any_of(kConventionFields.begin(), kConventionFields.end(), [&](const ConventionField& f) {
      return changes_results(f) && stated.*(f.value) != own.*(f.value);
    });
    if (!differ) continue;
    const std::string name = backend->identity().name;
    for (const ProbedStatement& f : probe_conventions(*backend)) {
      const auto field = std::find_if(kConventionFields.begin(), kConventionFields.end(),
                                      [&](const ConventionField& one) { return one.name == f.name; });
      if (f.holds || !changes_results(*field) || stated.*(field->value) == own.*(field->value)) continue;
      list.push_back(fmt::format("{} states the convention {}={}; observed: {} ({})", name, f.name, f.stated,
                                 f.observed, printed_command("list conventions", identity_of(*backend))));
    }
  }
  return list;
}

/// With a whole committed suite every backend's arithmetic is probed, by one of its shards: the bounds stand on it.
/// Of a backend with failing cases nothing is said: what they say comes first, and it may be the reason.
std::vector<std::string> CheckRun::false_statements() const {
  std::vector<std::string> list;
  if (committed_.empty() || interrupted || !settings_.filter.empty() || !shard_.is_first()) return list;
  std::vector<Call> calls;
  for (const Place& place : places_) {
    if (place.list->committed) calls.push_back(place.source->problem);
  }
  for (Backend* backend : backends_.all()) {
    const std::string name = backend->identity().name;
    if (wrong_.contains(name)) continue;
    for (const ProbedStatement& f : told_once(probe_arithmetic_of(*backend, calls))) {
      const std::string where = f.shown.empty() ? "" : "; " + f.shown;
      list.push_back(fmt::format("{} says of its {}: {}; observed: {}{} ({})", name, f.name, f.stated, f.observed,
                                 where, printed_command("list arithmetic", identity_of(*backend))));
    }
  }
  return list;
}

std::vector<RightIfTold> CheckRun::statements_that_explain() const {
  std::vector<RightIfTold> list;
  if (settings_.explain_seconds <= 0) return list;
  for (const auto& [name, results] : wrong_) {
    Backend* backend = backends_.find(name);
    if (!backend || interrupted || seconds_left() <= 0) continue;
    const auto found =
        results.right_if(*backend, settings_.threads, std::min(settings_.explain_seconds, seconds_left()));
    if (found) list.push_back({name, found->statement(), found->code(language_of(backend->identity().plugin))});
  }
  return list;
}

std::vector<std::string> CheckRun::late_faults() const {
  std::vector<std::string> list;
  const auto look_at = [&](const BackendSet& set) {
    for (const Backend* backend : set.all()) {
      try {
        wait_for_worker(*backend);
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
  std::size_t number = 0;
  for (const CaseList& list : cases_) {
    for (const Case& source : list.cases) {
      const bool here = own_[number++];
      info.cases += here;
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
  info.selection.fingerprint = fingerprint_of(cases_, settings_.filter);
  info.selection.shard = settings_.shard;
}

CheckOutcome CheckRun::finish() {
  const auto stage = [&](const char* what) {
    for (auto& report : reports_) report->stage(what);
  };
  if (settings_.shrink && !interrupted && seconds_left() > 0) {
    if (counts_.failures() > 0) stage("making the first failures small");
    failures_.shrink_all(
        settings_.threads, settings_.shrunk_folder,
        [&](const Verdict& failure, const Verdict& small) {
          for (auto& report : reports_) report->shrunk(failure, small);
        },
        [&](const std::string& name) { return fresh_one(name); },
        [&](const std::string& label) { return case_named(label); }, [&] { return seconds_left(); });
  }
  CheckOutcome outcome;
  outcome.counts = counts_;
  if (!wrong_.empty() && settings_.explain_seconds > 0) stage("what backends would have to state to be right");
  outcome.right_if = statements_that_explain();
  for (const RightIfTold& told : outcome.right_if) {
    for (auto& report : reports_) report->right_if(told);
  }
  if (settings_.compare_refusals) outcome.problems = compare_refusals(committed_);
  stage("what the backends state, and what their last plans left");
  for (std::string& lie : false_conventions()) outcome.problems.push_back(std::move(lie));
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
