// attest fuzz: random cases against one backend.
#include "harness/search/fuzz.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>

#include "harness/backends/set/backend_set.h"
#include "harness/base/interrupted.h"
#include "harness/base/output_file.h"
#include "harness/base/terminal.h"
#include "harness/base/text.h"
#include "harness/cli/command.h"
#include "harness/cli/number_range.h"
#include "harness/mpi/agreement.h"
#include "harness/run/fuzz_on_ranks.h"
#include "harness/tuning/parameters.h"

namespace attest {
namespace {

struct FuzzOptions {
  BackendOptions backend;
  IsolationFlags isolation;
  OutputOptions output;
  double seconds = 60;
  std::uint64_t count = 0, seed = 0;
  double budget = 0;
  std::string out;
  std::vector<std::string> always;
};

void print_pairs(const FuzzResult& result) {
  const std::vector<std::string> names(result.options.begin(), result.options.end());
  const std::size_t all = names.size() * (names.size() - (names.empty() ? 0 : 1)) / 2;
  fmt::print("{} options, {} of their {} pairs met", names.size(), result.pairs.size(), all);
  if (all > 0) fmt::print(" ({:.0f}%)", 100.0 * static_cast<double>(result.pairs.size()) / static_cast<double>(all));
  std::string rare;
  int shown = 0;
  for (const auto& [pair, count] : result.pairs) {
    if (count > 1 || ++shown > 5) continue;
    rare += (rare.empty() ? "; met once: " : ", ") + pair.first + " + " + pair.second;
  }
  fmt::print("{}\n", rare);
}

/// How far it is, and the first failure when it happens.
class FuzzProgress {
 public:
  FuzzProgress(const FuzzSettings& settings, bool colored) : settings_(settings), colored_(colored) {
    progress_.unit = "cases";
    progress_.wanted = settings.count;
  }

  void tell(const FuzzResult& result) {
    if (!told_failure_ && !result.findings.empty()) {
      told_failure_ = true;
      line_.clear();
      const Verdict& first = result.findings.front().failure;
      fmt::print("{} {}  {}\n     {}\n     {}\n", colored_text("FAIL", Severity::bad, colored_), first.backend,
                 printable_line(first.case_line), printable_line(first.reason), printable_line(first.repro));
      std::fflush(stdout);
    }
    if (!line_.due()) return;
    progress_.done = result.cases;
    progress_.failed = result.failed;
    if (result.closest > 0) progress_.worst = result.closest;
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start_;
    if (settings_.count == 0) progress_.seconds_left = settings_.seconds - spent.count();
    line_.draw(progress_);
  }

  void end() { line_.clear(); }

 private:
  const FuzzSettings& settings_;
  bool colored_, told_failure_ = false;
  Progress progress_;
  ProgressLine line_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// Is it right? In the words of check's table.
void print_answer(const FuzzResult& result, const std::string& backend, bool colored) {
  const char* answer = result.failed > 0 ? "wrong" : result.pass > 0 ? "nothing wrong found" : "nothing proved";
  const Severity severity = result.failed > 0 ? Severity::bad : result.pass > 0 ? Severity::good : Severity::doubtful;
  const std::string text = fmt::format("{}: {}; {} pass, {} fail, {} refused, {} inconclusive", answer, backend,
                                       result.pass, result.failed, result.refused, result.inconclusive);
  fmt::print("{}\n", colored_text(text, severity, colored));
}

/// The backend, and what its name needs to live.
struct Searched {
  Searched(const FuzzOptions& options, std::span<const BackendEntry> registry)
      : plugins(options.backend.sources(), registry, options.backend.limits()),
        backends(plugins.entries(), options.backend.one("fuzz looks at", plugins), options.backend.context(),
                 options.isolation.options(options.backend)) {
    if (!options.isolation.wanted(options.backend)) backends.isolate_fresh({});
  }

  Plugins plugins;
  BackendSet backends;
};

int run(const FuzzOptions& options, std::span<const BackendEntry> registry, Ranks* ranks) {
  const bool leads = !ranks || ranks->rank() == 0;
  std::optional<Searched> searched;
  std::optional<OutputFile> file;
  FuzzSettings settings;
  take_together(ranks, [&] {
    for (const std::string& words : options.always) settings.always.push_back(with_always(words));
    searched.emplace(options, registry);
    if (leads && !options.out.empty()) file.emplace(options.out);
  });
  Backend& backend = *searched->backends.all().front();
  settings.seconds = options.seconds;
  settings.count = options.count;
  settings.budget = options.budget;
  settings.seed = options.seed;
  settings.threads = options.backend.context().threads;
  settings.fresh = [&set = searched->backends, name = backend.identity().name] { return set.fresh(name); };

  const bool colored = options.output.colored(stdout);
  FuzzProgress progress(settings, colored);
  const auto tell = [&](const FuzzResult& so_far) { progress.tell(so_far); };
  const SharedFuzz shared =
      ranks ? fuzz_on_ranks(*ranks, backend, settings, tell) : SharedFuzz{fuzz(backend, settings, tell)};
  progress.end();
  if (!leads) return kOk;
  const FuzzResult& result = shared.result;

  print_answer(result, backend.identity().name, colored);
  fmt::print("{}\n", printable_line(description(identity_of(backend))));
  for (const Finding& finding : result.findings) {
    fmt::print("\n{} x  {}\n  {}\n  {}\n", finding.count, finding.failure.cause.text(),
               printable_line(finding.small.verdict.repro), printable_line(finding.small.verdict.reason));
  }
  if (file) {
    write_findings(file->stream(), result.findings);
    file->finish();
  }
  fmt::print("\n");
  print_pairs(result);
  const auto alone = static_cast<std::size_t>(std::count_if(result.classes.begin(), result.classes.end(),
                                                            [](const auto& met) { return met.first == met.second; }));
  fmt::print("classes of the table met: {}, and {} pairs of them\n", alone, result.classes.size() - alone);
  if (result.closest > 0) fmt::print("closest to its bound: {:.3g} at {}\n", result.closest, result.closest_case);
  fmt::print("seed {}: {} cases, {} refused, {} inconclusive\n", options.seed, result.cases, result.refused,
             result.inconclusive);
  fmt::print("{} passed, {} failed in {} way(s)\n", result.pass, result.failed, result.findings.size());
  if (!shared.complete) {
    fmt::print(stderr, "attest: interrupted: what some ranks had found is not counted\n");
    std::fflush(stdout);
    std::_Exit(kInterrupted);  // nobody waits for them
  }
  if (interrupted) return kInterrupted;
  if (result.failed > 0) return kFailed;
  if (result.pass == 0) {
    fmt::print(stderr, "attest: nothing passed: {}\n",
               result.inconclusive > 0 ? "what ran is inconclusive, its bounds are too wide to prove anything"
               : result.refused > 0    ? "the backend refused everything; --always names options that it needs"
                                       : "no time for a single case");
    return kNothingChecked;
  }
  return kOk;
}

}  // namespace

void add_fuzz(CLI::App& app, Invocation& invocation) {
  const auto options = std::make_shared<FuzzOptions>();
  auto* sub =
      add_command(app, "fuzz",
                  "Cases for classes of values not yet met, random ones, and neighbours of those closest to their "
                  "bound; failures made small.",
                  "attest fuzz --backend mine --time 60s --seed 1");
  add_backend_options(*sub, options->backend, BackendCount::one);
  add_plugin_options(*sub, options->backend);
  add_ranks_option(*sub, options->backend);
  sub->add_option("--time", options->seconds, "For how long at most: 60s, 5m; default: 60s")
      ->transform(CLI::AsNumberWithUnit(std::map<std::string, double>{{"s", 1}, {"m", 60}, {"h", 3600}}))
      ->check(number_range(0.01, 1e6));
  sub->add_option("--count", options->count, "Stop after this many cases");
  sub->add_option("--budget", options->budget, "Stop after so many multiply-adds of all cases together")
      ->check(number_range(0, 1e300));
  sub->add_option("--seed", options->seed, "The same seed, the same cases");
  sub->add_option("--always", options->always,
                  "Options of every case, as \"k.dtype=i8 v.dtype=i8\", for backends that refuse cases without; may be "
                  "repeated: one of them, by chance")
      ->type_name("OPTIONS");
  sub->add_option("--out", options->out, "Write the smallest failing cases to this file, for --suite-file")
      ->type_name("FILE");
  add_isolation_options(*sub, options->backend, options->isolation);
  add_color_option(*sub, options->output);
  sub->callback([options, &invocation] {
    invocation.exit_code = run_on_ranks(invocation, options->backend, Oversubscription::is_told,
                                        [&](Ranks* ranks) { return run(*options, invocation.registry, ranks); });
  });
}

}  // namespace attest
