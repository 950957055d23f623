#include "harness/judge/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <numeric>
#include <random>

#include "harness/backends/isolation/isolated_backend.h"
#include "harness/backends/set/backend_set.h"
#include "harness/backends/set/plugins.h"
#include "harness/base/interrupted.h"
#include "harness/base/statistics.h"
#include "harness/base/user_error.h"
#include "harness/judge/permitted.h"
#include "harness/judge/submission.h"
#include "harness/run/check_run.h"
#include "harness/speed/machine/roof.h"
#include "harness/speed/timing/bench.h"

namespace attest {
namespace {

/// Of the budget, until when cases are checked where others are timed afterwards. What has begun is ended.
constexpr double kShareOfChecking = 0.6;
/// The time that one step may take, as a share of the budget, and at least.
constexpr double kShareOfStep = 0.15, kShortestLimit = 0.5;
constexpr double kShareOfLoading = 0.4;  ///< the same of loading it, which a module of Python may take seconds for
constexpr int kRepetitions = 9;
constexpr double kShortestSample = 0.02, kLongestSample = 0.5;  ///< seconds
/// Of what is left for a timed case, what samples may take; the rest is for its reference, and for checking them.
constexpr double kShareOfSamples = 0.4;

using Moment = std::chrono::steady_clock::time_point;

/// Negative once it is over.
double seconds_until(Moment end) {
  return std::chrono::duration<double>(end - std::chrono::steady_clock::now()).count();
}

/// A step may take so long, where the user allows it.
IsolationOptions limited(IsolationOptions limits, double seconds) {
  const std::chrono::duration<double> most(std::max(seconds, kShortestLimit));
  limits.limit = std::min(limits.limit, std::chrono::duration_cast<std::chrono::milliseconds>(most));
  return limits;
}

/// Keeps of a run what a verdict needs.
class Kept : public Report {
 public:
  explicit Kept(JudgedSubmission& judged) : judged_(judged) {}
  void verdict(const Verdict& v) override {
    judged_.worst_error_over_bound = std::max(judged_.worst_error_over_bound, v.error_over_bound.value_or(0));
    if (is_right(v) || !judged_.reason.empty() || !(is_failure(v) || v.status == Status::refused)) return;
    if (v.status == Status::refused) {
      refusal_ = refusal_.empty() ? "refused: " + v.reason : refusal_;
      return;
    }
    judged_.reason = std::string(name_of(v.status)) + ": " + v.reason;
    judged_.failing_line = v.case_line;
  }
  void shrunk(const Verdict& failure, const Verdict& small) override {
    if (failure.case_line == judged_.failing_line) judged_.failing_line = small.case_line;
  }
  void end(const Counts& counts, double, const std::vector<std::string>& problems) override {
    judged_.counts = counts;
    if (judged_.reason.empty() && !problems.empty()) judged_.reason = problems.front();
    if (judged_.reason.empty()) judged_.reason = refusal_;
  }

 private:
  JudgedSubmission& judged_;
  std::string refusal_;
};

std::vector<Case> drawn_cases(const Task& task, std::mt19937_64& random) {
  std::vector<Case> cases;
  for (const Task::Drawn& one : task.drawn) {
    for (int n = 0; n < one.count; ++n)
      cases.push_back(case_from_line(drawn_line(one.pattern, random) + " seed=" + std::to_string(random() >> 33)));
  }
  return cases;
}

/// What a submission did in the timing that it mustn't do in a check either. Others have no speed and are right.
bool is_wrong(NoSpeed kind) {
  switch (kind) {
    case NoSpeed::wrong_result:
    case NoSpeed::wrong_while_timed:
    case NoSpeed::earlier_result:
    case NoSpeed::suspect:
    case NoSpeed::threw:
    case NoSpeed::crashed:
    case NoSpeed::out_of_memory:
    case NoSpeed::timeout:
    case NoSpeed::float_mode_changed:
    case NoSpeed::changes_inputs: return true;
    default: return false;
  }
}

void require_permitted(const StatementWatch& watch) {
  if (const std::string excess = watch.excess(); !excess.empty())
    throw InvalidSubmission("it states more than it may: " + excess);
}

std::string baseline_of(std::span<const BackendEntry> registry, const std::string& wanted) {
  // Without a name one that compiles nothing when it runs.
  for (const std::string& name : wanted.empty() ? std::vector<std::string>{"eigen", "example"} : std::vector{wanted}) {
    for (const BackendEntry& entry : registry) {
      if (entry.make && entry.name == name) return name;
    }
  }
  if (wanted.empty()) return "";
  throw UserError("--baseline " + wanted + ": there is no such backend here");
}

void check(JudgedSubmission& judged, const Task& task, const BackendSet& backends,
           const std::vector<BackendSet>& more_threads, std::mt19937_64& random, const JudgeSettings& settings,
           Moment deadline) {
  CheckSettings check;
  check.threads = settings.threads;
  check.isolated = true;
  check.compare_refusals = false;
  check.seed = random();
  check.deadline = deadline;
  check.explain_seconds = 0;
  std::vector<std::unique_ptr<Report>> reports;
  reports.push_back(std::make_unique<Kept>(judged));
  std::vector<Case> cases = drawn_cases(task, random);
  judged.drawn = cases.size();
  CheckRun run(check, {{task.name, false, std::move(cases)}}, backends, more_threads, {}, std::move(reports));
  const CheckOutcome outcome = run.run();
  if (outcome.interrupted) throw UserError("interrupted");
  const Counts& counts = judged.counts;
  const bool refuses = counts.refused > 0 && !task.may_refuse;
  if (counts.failures() > 0 || !outcome.problems.empty() || refuses)
    judged.verdict = Judged::fail;
  else
    judged.verdict = counts.proved() > 0 ? Judged::pass : Judged::unproven;
  const std::size_t done = counts.passed() + counts.failures() + counts.skipped();
  if (judged.verdict != Judged::fail && done < judged.drawn) {
    judged.verdict = Judged::unproven;
    judged.reason = fmt::format("the budget was over after {} of {} cases", done, judged.drawn);
    return;
  }
  if (judged.verdict == Judged::pass) judged.reason.clear();
  if (judged.verdict == Judged::unproven && judged.reason.empty()) judged.reason = "nothing could be proved";
}

void time(JudgedSubmission& judged, const Task& task, const std::vector<Backend*>& backends, std::mt19937_64& random,
          const JudgeSettings& settings, Moment end) {
  const Roof roof = measure_roof(settings.threads);
  const double each =
      kShareOfSamples * seconds_until(end) / static_cast<double>(task.timed.size() * backends.size() * kRepetitions);
  std::size_t cases_left = task.timed.size();
  for (const Task::Timed& one : task.timed) {
    const Case source = case_from_line(drawn_line(one.pattern, random));
    const std::uint64_t seed = random();
    const double left = seconds_until(end);
    if (left <= 0) {
      judged.speeds.push_back({source.label, one.weight, {NoSpeed::timeout, "the budget was over"}, 0, {}, 0, 0, 0});
      continue;
    }
    BenchSettings bench{settings.threads, kRepetitions, std::clamp(each, kShortestSample, kLongestSample), seed};
    bench.progress = settings.progress;
    bench.most_seconds = kShareOfSamples * left / static_cast<double>(cases_left--);
    const BenchCase timed = bench_case(source, backends, roof, bench);
    JudgedSpeed speed{source.label, one.weight, {}, 0, {}, 0, 0, 0};
    for (const BenchLine& line : timed.lines) {
      if (line.backend == judged.baseline) {
        speed.baseline_seconds = line.wrong.empty() ? line.median() : 0;
        continue;
      }
      speed.wrong = line.wrong;
      if (!line.wrong.empty()) continue;
      speed.seconds = line.median();
      speed.interval = line.interval;
      speed.roof_fraction = line.roof_fraction;
      speed.threads = line.steps.processors.empty() ? 0 : median(line.steps.processors);
    }
    judged.speeds.push_back(speed);
    if (is_wrong(speed.wrong.kind)) {
      judged.verdict = Judged::fail;
      judged.reason = speed.wrong.text;
      judged.failing_line = speed.case_line;
    }
    if (interrupted) throw UserError("interrupted");
  }
}

}  // namespace

std::optional<double> JudgedSubmission::speedup() const {
  double sum = 0, weights = 0;
  for (const JudgedSpeed& one : speeds) {
    if (!one.wrong.empty() || one.seconds <= 0 || one.baseline_seconds <= 0) return std::nullopt;
    sum += one.weight * std::log(one.baseline_seconds / one.seconds);
    weights += one.weight;
  }
  if (weights == 0) return std::nullopt;
  return std::exp(sum / weights);
}

JudgedSubmission judge(const std::string& path, const Task& task, std::span<const BackendEntry> registry,
                       const JudgeSettings& settings) {
  const Moment begin = std::chrono::steady_clock::now();
  const auto at = [&](double share) {
    const std::chrono::duration<double> seconds(share * settings.budget_seconds);
    return begin + std::chrono::duration_cast<Moment::duration>(seconds);
  };
  JudgedSubmission judged;
  judged.baseline = baseline_of(registry, settings.baseline);
  const auto tell = [&](const std::string& what) {
    if (settings.progress) settings.progress(what);
  };
  std::mt19937_64 random(settings.secret_seed);
  // Whether there is a sandbox is not the submission's business.
  const auto watch = std::make_shared<StatementWatch>(task.permitted);
  const IsolationOptions own = limited(settings.limits, kShareOfStep * settings.budget_seconds);
  const IsolationOptions limits = StatementWatch::heard(own, watch);
  std::optional<BackendSet> baseline;
  if (!judged.baseline.empty())
    baseline.emplace(registry, std::vector{judged.baseline}, Context{settings.threads, "", nullptr}, own);
  judged.submission = name_of_submission(path);
  try {
    const Submission submission = take_submission(path, settings.interpreter);
    judged.content = submission.content;
    const LoadableSubmission loadable =
        made_loadable(submission, task.call, *settings.limits.sandbox,
                      std::chrono::milliseconds(static_cast<std::int64_t>(1e3 * settings.budget_seconds)));
    std::optional<Plugins> plugins;
    std::optional<BackendSet> backends;
    std::vector<BackendSet> more_threads;
    try {
      plugins.emplace(std::vector<std::string>{loadable.source}, registry,
                      limited(settings.limits, kShareOfLoading * settings.budget_seconds));
      if (plugins->names().size() != 1) throw InvalidSubmission("it has more than one backend");
      judged.name = plugins->names().front();
      const int many = 2 * settings.threads + 1;
      backends.emplace(plugins->entries(), plugins->names(), Context{settings.threads, "", nullptr}, limits);
      more_threads.emplace_back(plugins->entries(), plugins->names(), Context{many, "", nullptr}, limits);
    } catch (const UserError& error) {
      throw InvalidSubmission(error.what());
    }
    judged.sandbox = sandbox_of(*backends->all().front());
    tell("checking " + judged.name);
    check(judged, task, *backends, more_threads, random, settings, at(task.timed.empty() ? 1 : kShareOfChecking));
    require_permitted(*watch);
    if (judged.verdict == Judged::pass && !task.timed.empty()) {
      tell("timing " + judged.name);
      more_threads.clear();
      std::vector<Backend*> timed = backends->all();
      if (baseline) timed.push_back(baseline->all().front());
      time(judged, task, timed, random, settings, at(1));
      require_permitted(*watch);
    }
  } catch (const InvalidSubmission& invalid) {
    judged.verdict = Judged::invalid;
    judged.speeds.clear();
    judged.reason = invalid.what();
  }
  judged.seconds = -seconds_until(begin);
  return judged;
}

}  // namespace attest
