// attest tune
#include "harness/speed/studies/tune.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <utility>

#include "harness/backends/isolation/isolated_backend.h"
#include "harness/backends/set/backend_set.h"
#include "harness/base/interrupted.h"
#include "harness/base/output_file.h"
#include "harness/base/terminal.h"
#include "harness/base/text.h"
#include "harness/base/user_error.h"
#include "harness/cases/memory.h"
#include "harness/cli/command.h"
#include "harness/cli/number_range.h"
#include "harness/run/case_lists.h"
#include "harness/speed/machine/thread_pools.h"
#include "harness/speed/timing/timed_case.h"
#include "harness/tuning/parameters.h"
#include "harness/tuning/tuned_file.h"

namespace attest {
namespace {

/// Dense, causal, wide heads and many small ones.
constexpr const char* kUsualCases[] = {"heads=8 seq=1024 dim=64", "heads=8 seq=1024 dim=64 causal",
                                       "heads=4 seq=1024 dim=128", "batch=16 heads=8 seq=128 dim=64"};

struct TuneOptions {
  BackendOptions backend;
  IsolationFlags isolation;
  CaseNames cases;
  std::string cache;
  int repetitions = 5;
  double min_seconds = 0.05;
  std::uint64_t seed = 1;
};

std::vector<Case> load(const TuneOptions& options) {
  CaseNames names = options.cases;
  if (names.arguments.empty() && names.suites.empty())
    names.arguments.assign(std::begin(kUsualCases), std::end(kUsualCases));
  std::vector<Case> cases;
  for (CaseList& list : load_cases(names)) {
    for (Case& one : list.cases) {
      if (one.from_file) throw UserError(one.label + ": tune takes case lines; files are for check");
      check_memory(one.problem, one.label);
      cases.push_back(std::move(one));
    }
  }
  return cases;
}

/// Throws UserError where there is nothing to choose; returns the most choices of one parameter.
std::size_t most_choices(const Backend& backend) {
  std::size_t most = 0;
  for (const Parameter& p : backend.tuning().parameters) most = std::max(most, p.choices.size());
  if (most < 2)
    throw UserError("backend " + backend.identity().name +
                    " has no parameters to tune; `attest list parameters` shows which have");
  return most;
}

void print_step(const TuneStep& step) {
  if (step.wrong.empty())
    fmt::print("  {}={}: {:.3f} of the time{}\n", step.parameter, step.value, step.ratio, step.taken ? ", taken" : "");
  else
    fmt::print("  {}={}: no speed: {}\n", step.parameter, step.value, printable_line(step.wrong.text));
  std::fflush(stdout);
}

void print_result(const TuneResult& result) {
  for (const TunedSpeed& speed : result.speeds) {
    fmt::print("{}: {:.3f} ms, standard {:.3f} ms: {:.3f} of the time ({:.3f} to {:.3f})\n", speed.case_line,
               speed.chosen_seconds * 1e3, speed.standard_seconds * 1e3, speed.ratio.ratio, speed.ratio.low,
               speed.ratio.high);
  }
  const std::string text = parameters_text(result.tuning);
  if (text.empty())
    fmt::print("the standard parameters stay: nothing was faster by {:.0f}% and for sure\n", 100 * kLeastGain);
  else
    fmt::print("{}: {:.3f} of the standard parameters' time ({:.3f} to {:.3f})\n", text, result.ratio.ratio,
               result.ratio.low, result.ratio.high);
}

int exit_code_of(const TuneResult& result) {
  if (interrupted) return kInterrupted;
  if (!result.wrong.empty()) {
    fmt::print(stderr, "attest: nothing was chosen: {}\n", printable_line(result.wrong.text));
    return result.cases.empty() ? kNothingChecked : kFailed;
  }
  const bool any_wrong =
      std::any_of(result.steps.begin(), result.steps.end(), [](const TuneStep& step) { return !step.wrong.empty(); });
  return any_wrong ? kFailed : kOk;
}

int run(const TuneOptions& options, const Invocation& invocation) {
  const std::vector<Case> cases = load(options);
  const Plugins plugins({}, invocation.registry);
  const std::vector<std::string> names = options.backend.one("tune works on", plugins);
  const Context context = options.backend.context();
  const std::vector<std::string>& limits = limit_thread_pools(context.threads);
  const std::optional<IsolationOptions> isolation = options.isolation.to_time(options.backend);
  const BackendSet first(plugins.entries(), names, context, isolation);
  const Backend& backend = *first.all().front();
  const std::size_t most = most_choices(backend);
  for (const Case& one : cases) check_memory_to_time(one, most, isolation.has_value());

  const std::filesystem::path path =
      options.cache.empty() ? default_tuned_file() : std::filesystem::path(options.cache);
  if (options.cache.empty()) std::filesystem::create_directories(path.parent_path());
  TunedChoices kept = read_tuned(path);
  OutputFile file(path);

  ProgressLine line;
  Progress progress;
  BenchSettings settings{context.threads, options.repetitions, options.min_seconds, options.seed};
  settings.progress = [&](const std::string& what) {
    progress.what = what;
    line.draw(progress);
  };
  const Roof roof = measure_roof(context.threads);
  fmt::print("{}\n", printable_line(description(backend.identity())));
  if (isolation) fmt::print("{}\n", limits_text(*isolation));
  fmt::print("thread pools told {} by {}\n", context.threads, join_texts(limits, ", "));
  const auto told = [&](const TuneStep& step) {
    line.clear();
    print_step(step);
  };
  const BackendEntry& entry = *std::find_if(invocation.registry.begin(), invocation.registry.end(),
                                            [&](const BackendEntry& e) { return e.name == names.front(); });
  const auto make = [&] {
    return isolation ? isolated_backend(names.front(), context, *isolation) : entry.make(context);
  };
  const TuneResult result = tune(make, cases, roof, settings, told);
  line.clear();
  const int exit_code = exit_code_of(result);
  if (interrupted || !result.wrong.empty()) return exit_code;
  print_result(result);
  Tuned tuned = tuned_here(backend, result.tuning);
  tuned.ratio = parameters_text(result.tuning).empty() ? 1 : result.ratio.ratio;
  tuned.cases = result.cases;
  kept.put(std::move(tuned));
  write_tuned(file.stream(), kept);
  file.finish();
  fmt::print("kept in {}\n", printable_line(path.string()));
  return exit_code;
}

}  // namespace

void add_tune(CLI::App& app, Invocation& invocation) {
  const auto options = std::make_shared<TuneOptions>();
  auto* sub =
      add_command(app, "tune",
                  "Choose a backend's parameters for this device by measurement, for later runs. The backend runs "
                  "in this process; with --isolate in one of its own, timed from outside.",
                  "attest tune --backend opencl");
  sub->add_option("case", options->cases.arguments, "Case lines to be fast on; default: four of usual shapes")
      ->type_name("CASE");
  sub->add_option("--suite", options->cases.suites, "A suite by name; may be repeated")->type_name("SUITE");
  add_backend_options(*sub, options->backend, BackendCount::one);
  add_isolation_options(*sub, options->backend, options->isolation);
  sub->add_option("--cache", options->cache, "Keep the choice here; default: attest/tuned.json in the user's cache")
      ->type_name("FILE");
  sub->add_option("--repetitions", options->repetitions, "Interleaved samples per choice and case")
      ->check(CLI::Range(1, 1000));
  sub->add_option("--min-time", options->min_seconds, "Seconds per sample, at least")->check(number_range(0.0, 60.0));
  sub->add_option("--seed", options->seed, "Of the samples' data");
  sub->callback([options, &invocation] { invocation.exit_code = run(*options, invocation); });
}

}  // namespace attest
