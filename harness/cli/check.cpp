// attest check
#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <filesystem>
#include <future>
#include <map>
#include <optional>
#include <regex>
#include <utility>

#include "harness/base/parallel.h"
#include "harness/base/user_error.h"
#include "harness/cases/case.h"
#include "harness/cases/memory.h"
#include "harness/cases/suites.h"
#include "harness/cli/cli.h"
#include "harness/cli/selection.h"
#include "harness/isolation/backend_set.h"
#include "harness/probe/probe.h"
#include "harness/report/earlier_run.h"
#include "harness/report/report.h"
#include "harness/search/shrink_case.h"
#include "harness/verdict/bitwise.h"
#include "harness/verdict/committed_lists.h"
#include "harness/verdict/prepared_case.h"

namespace attest {
namespace {

struct SuiteCases {
  std::string name;
  bool committed = false;  ///< found by name: its refusals are compared with the lists
  std::vector<Case> cases;
};

std::vector<SuiteCases> load(const CheckOptions& options) {
  std::vector<SuiteCases> suites;
  for (const std::string& name : options.suites) {
    suites.push_back({name, true, load_suite(find_suite(name))});
  }
  for (const std::string& path : options.suite_files) {
    suites.push_back({std::filesystem::path(path).stem().string(), false, load_case_file(path)});
  }
  if (!options.cases.empty()) {
    SuiteCases own;
    for (const std::string& text : options.cases) own.cases.push_back(case_from_argument(text));
    suites.push_back(std::move(own));
  }
  if (suites.empty()) throw UserError("nothing to check: name a case line, a file, --suite or --suite-file");
  return suites;
}

constexpr std::size_t kMostShrunk = 3;
constexpr double kShrinkSeconds = 2;

/// Cases up to this size are prepared while the one before is checked, and isolated backends check them side by side:
/// two sets of inputs and an output for each backend are in memory then.
constexpr double kSmallCaseBytes = 64 << 20;

bool is_small(const Case& source) { return memory_needed(source.problem) <= kSmallCaseBytes; }

/// What is to do for one case.
struct Task {
  const SuiteCases* suite = nullptr;
  const Case* source = nullptr;
  std::vector<Backend*> backends;
  std::vector<std::pair<Backend*, Verdict>> remembered;  ///< of the run that is resumed
  bool reference = false;                                ///< is held against the file's results
  std::future<std::unique_ptr<PreparedCase>> prepared;
};

struct Failure {
  const Case* source;
  Backend* backend;
  Verdict verdict;
};

class CheckRun {
 public:
  /// `other_threads`: the same backends made for other numbers of threads, with --bitwise.
  CheckRun(const CheckOptions& options, std::vector<SuiteCases> suites, const BackendSet& backends,
           const std::vector<BackendSet>& other_threads)
      : options_(options),
        suites_(std::move(suites)),
        backends_(backends),
        other_threads_(other_threads),
        filter_(options.filter),
        shard_(options.shard),
        started_(std::chrono::steady_clock::now()) {
    if (options.resume) earlier_ = EarlierRun(options.json);
    // Files are opened before anything runs, so that an unwritable path costs nothing.
    std::error_code error;
    if (!options.shrunk.empty()) std::filesystem::create_directories(options.shrunk, error);
    if (error) throw UserError("--shrunk " + options.shrunk + ": " + error.message() + "; name another folder");
    if (!options.json.empty()) reports_.push_back(json_lines_report(options.json));
    if (!options.junit.empty()) reports_.push_back(junit_report(options.junit));
    reports_.push_back(console_report());
  }

  int run() {
    begin();
    std::optional<Task> ahead;
    std::size_t number = 0;
    for (const SuiteCases& suite : suites_) {
      for (const Case& source : suite.cases) {
        if (!shard_.holds(number++)) continue;
        std::optional<Task> task = std::exchange(ahead, plan(suite, source));
        if (task) check(*task);
        if (stop()) return finish();
      }
    }
    if (ahead) check(*ahead);
    return finish();
  }

 private:
  bool stop() const { return interrupted || (options_.fail_fast && counts_.failures() > 0); }

  void begin() {
    RunInfo info;
    info.command = options_.command;
    info.unavailable = backends_.unavailable();
    for (Backend* backend : backends_.all()) info.backends.push_back(backend->identity());
    for (const SuiteCases& suite : suites_) info.cases += suite.cases.size();
    info.cases = shard_.count(info.cases);
    for (auto& report : reports_) report->begin(info);
  }

  /// What there is to do for a case, and its start: inputs, reference and bounds in a thread beside the backends.
  Task plan(const SuiteCases& suite, const Case& source) {
    Task task;
    task.suite = &suite;
    task.source = &source;
    const auto remembered = [&](Backend* backend, const std::string& name) {
      std::optional<Verdict> before = earlier_.find(suite.name, source.label, name);
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
    const int threads = options_.common.context().threads;
    task.prepared = std::async(when, [&source, producers = producers_of(source, task.backends), threads] {
      return std::make_unique<PreparedCase>(source, producers, threads);
    });
    return task;
  }

  void check(Task& task) {
    for (auto& [backend, verdict] : task.remembered) record(task, backend, std::move(verdict));
    if (!task.prepared.valid()) return;
    const std::unique_ptr<PreparedCase> prepared = task.prepared.get();
    if (task.reference) record(task, nullptr, prepared->check_reference());
    // Workers hardly use the cores that they have: most of a small case is waiting for one another.
    const std::size_t together =
        options_.isolate && !options_.fail_fast && is_small(*task.source) ? task.backends.size() : 1;
    for (std::size_t first = 0; first < task.backends.size() && !stop(); first += together) {
      std::vector<Verdict> verdicts(together);
      parallel_for(together, options_.common.context().threads, [&](std::size_t n) {
        Backend& backend = *task.backends[first + n];
        verdicts[n] = prepared->check(backend);
        if (options_.bitwise && verdicts[n].status == Status::pass) add_bitwise(*prepared, backend, verdicts[n]);
      });
      for (std::size_t n = 0; n < together; ++n) record(task, task.backends[first + n], std::move(verdicts[n]));
    }
  }

  /// A backend that fails here was right before: that it fails now is its verdict.
  void add_bitwise(const PreparedCase& prepared, Backend& backend, Verdict& verdict) const {
    std::vector<Backend*> others;
    for (const BackendSet& set : other_threads_) {
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

  void record(const Task& task, Backend* backend, Verdict verdict) {
    verdict.suite = task.suite->name;
    counts_.add(verdict);
    if (is_failure(verdict) && backend && failures_.size() < kMostShrunk) {
      failures_.try_emplace(verdict.backend + " " + verdict.cause, Failure{task.source, backend, verdict});
    }
    for (auto& report : reports_) report->verdict(verdict);
    if (task.suite->committed) committed_.push_back(std::move(verdict));
  }

  /// The first failures that look different, made small; a few seconds in all. Files go to the folder of --shrunk.
  void shrink_failures() {
    if (options_.no_shrink || interrupted) return;
    const int threads = options_.common.context().threads;
    for (const auto& [key, failure] : failures_) {
      if (failure.source->from_file && options_.shrunk.empty()) {
        ++unshrunk_files_;
        continue;
      }
      try {
        const ShrunkCase shrunk =
            shrink_case(*failure.source, *failure.backend, threads, kShrinkSeconds, place_of(failure));
        for (auto& report : reports_) report->shrunk(failure.verdict, shrunk.verdict);
      } catch (const UserError& error) {
        fmt::print(stderr, "attest: not made smaller: {}\n", error.what());
      }
    }
  }

  std::filesystem::path place_of(const Failure& failure) const {
    const std::string stem = std::filesystem::path(failure.source->label).stem().string();
    return std::filesystem::path(options_.shrunk) / (stem + "-" + failure.verdict.backend + ".safetensors");
  }

  /// With a whole committed suite every backend's arithmetic is probed: the bounds stand on it.
  std::vector<std::string> false_statements() const {
    std::vector<std::string> list;
    if (committed_.empty() || interrupted || !options_.filter.empty() || !options_.shard.empty()) return list;
    for (Backend* backend : backends_.all()) {
      for (const ProbedStatement& f : probe_arithmetic(*backend)) {
        if (f.holds) continue;
        list.push_back(fmt::format("{} says of its {}: {}; observed: {} (attest list arithmetic --backend {})",
                                   backend->identity().name, f.name, f.stated, f.observed, backend->identity().name));
      }
    }
    return list;
  }

  int finish() {
    shrink_failures();
    std::vector<std::string> problems = compare_refusals(committed_);
    for (std::string& lie : false_statements()) problems.push_back(std::move(lie));
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
    for (auto& report : reports_) report->end(counts_, seconds, problems);
    if (unshrunk_files_ > 0) fmt::print("--shrunk FOLDER writes the smallest file that fails for each failing file\n");
    if (interrupted) return kInterrupted;
    earlier_.remove_parts();
    if (counts_.failures() > 0 || !problems.empty()) return kFailed;
    if (counts_.pass + counts_.mistrusted == 0) {
      fmt::print(stderr, "attest: nothing was checked: {}\n",
                 counts_.refused > 0 ? "every backend refused everything" : "the filter or shard left no case");
      return kNothingChecked;
    }
    return kOk;
  }

  const CheckOptions& options_;
  int unshrunk_files_ = 0;
  std::vector<SuiteCases> suites_;
  const BackendSet& backends_;
  const std::vector<BackendSet>& other_threads_;
  Filter filter_;
  Shard shard_;
  std::chrono::steady_clock::time_point started_;
  std::vector<std::unique_ptr<Report>> reports_;
  std::vector<Verdict> committed_;
  std::map<std::string, Failure> failures_;  ///< by backend and cause; the first few
  Counts counts_;
  EarlierRun earlier_;
};

}  // namespace

int run_check(const CheckOptions& options, std::span<const BackendEntry> registry) {
  std::vector<SuiteCases> suites = load(options);
  for (const SuiteCases& suite : suites) {
    for (const Case& source : suite.cases) check_memory(source.problem, source.label);
  }
  const BackendSet backends(registry, split_names(options.common.backends), options.common.context(),
                            options.isolation());
  std::vector<BackendSet> other_threads;
  for (const int threads : {1, 2, 3}) {
    Context context = options.common.context();
    if (!options.bitwise || threads == context.threads) continue;
    context.threads = threads;
    other_threads.emplace_back(registry, split_names(options.common.backends), context, options.isolation());
  }
  return CheckRun(options, std::move(suites), backends, other_threads).run();
}

}  // namespace attest
