// attest check
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <thread>

#include "harness/base/fingerprint.h"
#include "harness/base/output_file.h"
#include "harness/base/text.h"
#include "harness/base/user_error.h"
#include "harness/cases/memory.h"
#include "harness/cli/command.h"
#include "harness/isolation/backend_set.h"
#include "harness/run/check_run.h"
#include "harness/run/run_conditions.h"
#include "harness/verdict/refusal_lists.h"

namespace attest {
namespace {

struct CheckOptions {
  BackendOptions backend;
  IsolationFlags isolation;
  CaseNames cases;
  std::string filter, shard, json, junit, shrunk, refusals;
  bool fail_fast = false, no_shrink = false, resume = false, once = false, bitwise = false;
};

std::vector<CaseList> load(const CaseNames& names) {
  std::vector<CaseList> lists = load_cases(names);
  if (lists.empty()) throw UserError("nothing to check: name a case line, a file, --suite or --suite-file");
  for (const CaseList& list : lists) {
    for (const Case& source : list.cases) check_memory(source.problem, source.label);
  }
  return lists;
}

/// The same backends made for more threads than there are cores; with --bitwise for some other numbers before.
std::vector<BackendSet> other_threads(const CheckOptions& options, const Plugins& plugins) {
  std::vector<BackendSet> sets;
  std::vector<int> numbers;
  if (options.bitwise) numbers = {1, 2, 3};
  if (!options.once) numbers.push_back(2 * static_cast<int>(std::max(std::thread::hardware_concurrency(), 1u)) + 1);
  for (const int threads : numbers) {
    Context context = options.backend.context();
    if (options.bitwise && threads == context.threads) continue;
    context.threads = threads;
    sets.emplace_back(plugins.entries(), options.backend.list(plugins), context,
                      options.isolation.options(options.backend));
  }
  return sets;
}

/// A faulty list is the user's to mend: it must not cost a whole run.
void require_lists_of(const BackendSet& backends, const CheckOptions& options) {
  std::vector<std::string> names;
  for (Backend* backend : backends.all()) names.push_back(backend->identity().name);
  require_lists(names, options.refusals);
}

/// Files are opened before anything runs, so that an unwritable path costs nothing.
std::vector<std::unique_ptr<Report>> open_reports(const CheckOptions& options) {
  std::error_code error;
  if (!options.shrunk.empty()) std::filesystem::create_directories(options.shrunk, error);
  if (error) throw UserError("--shrunk " + options.shrunk + ": " + error.message() + "; name another folder");
  if (!options.json.empty() && !options.junit.empty() && is_same_output(options.json, options.junit)) {
    throw UserError("--junit " + options.junit + ": --json writes this file; name another one");
  }
  std::vector<std::unique_ptr<Report>> reports;
  if (!options.json.empty()) reports.push_back(json_lines_report(options.json));
  if (!options.junit.empty()) reports.push_back(junit_report(options.junit));
  reports.push_back(console_report());
  return reports;
}

/// A run that began anew and came to its end stands for all that killed ones had left under its names: --resume would
/// go on from that, too. The parts of JUnit hold nothing.
void remove_what_is_replaced(const CheckOptions& options, const CheckOutcome& outcome) {
  if (outcome.interrupted || !outcome.unwritten.empty()) return;
  if (!options.json.empty() && !options.resume) remove_abandoned_parts(options.json);
  if (!options.junit.empty()) remove_abandoned_parts(options.junit);
}

/// Of a run without a pass or a failure.
const char* why_nothing_passed(const Counts& counts) {
  if (counts.mistrusted > 0) return "nothing passed: what ran is mistrusted, its bounds are too wide to prove anything";
  if (counts.waived > 0) return "nothing passed: what ran is suspect and waived";
  return counts.refused > 0 ? "nothing was checked: every backend refused everything"
                            : "nothing was checked: the filter or shard left no case";
}

int exit_code_of(const CheckOutcome& outcome) {
  for (const std::string& file : outcome.unwritten) fmt::print(stderr, "attest: {}\n", printable_line(file));
  if (outcome.interrupted) return kInterrupted;
  if (!outcome.unwritten.empty()) return kFailed;
  const Counts& counts = outcome.counts;
  if (counts.failures() > 0 || !outcome.problems.empty()) return kFailed;
  if (counts.pass > 0) return kOk;
  fmt::print(stderr, "attest: {}\n", why_nothing_passed(counts));
  return kNothingChecked;
}

int run(const CheckOptions& options, const Invocation& invocation) {
  if (options.resume && !options.backend.objects.empty())
    throw UserError("--resume: whether a module of Python is still the same can't be told; begin anew, without it");
  std::vector<CaseList> cases = load(options.cases);
  const Context context = options.backend.context();
  const auto isolation = options.isolation.options(options.backend);
  const Plugins plugins(options.backend.sources(), invocation.registry);
  const std::vector<std::filesystem::path> libraries = loaded_libraries();
  const BackendSet backends(plugins.entries(), options.backend.list(plugins), context, isolation);
  backends.require(options.backend.required());
  require_lists_of(backends, options);
  const std::vector<BackendSet> others = other_threads(options, plugins);
  CheckSettings settings;
  settings.filter = options.filter;
  settings.shard = options.shard;
  settings.threads = context.threads;
  settings.fail_fast = options.fail_fast;
  settings.isolated = isolation.has_value();
  settings.once = options.once;
  settings.bitwise = options.bitwise;
  settings.shrink = !options.no_shrink;
  settings.shrunk_folder = options.shrunk;
  settings.compare_refusals = options.refusals.empty();
  settings.command = invocation.words;
  if (!options.json.empty()) {
    settings.conditions = run_conditions(backends, context, isolation, options.bitwise, libraries);
    if (options.once) settings.conditions["plans"] = "run once";
  }
  EarlierRun earlier = options.resume ? EarlierRun(options.json, settings.conditions) : EarlierRun();
  const CheckOutcome outcome =
      CheckRun(settings, std::move(cases), backends, others, std::move(earlier), open_reports(options)).run();
  remove_what_is_replaced(options, outcome);
  for (const std::string& note : outcome.notes)
    fmt::print(stderr, "attest: not made smaller: {}\n", printable_line(note));
  if (outcome.unshrunk_files > 0) {
    fmt::print("--shrunk FOLDER writes the smallest file that fails for each failing file\n");
  }
  if (!options.refusals.empty() && !outcome.interrupted) {
    for (const auto& path : write_refusals(options.refusals, outcome.committed))
      fmt::print("wrote {}\n", path.string());
  }
  return exit_code_of(outcome);
}

}  // namespace

void add_check(CLI::App& app, Invocation& invocation) {
  const auto options = std::make_shared<CheckOptions>();
  auto* sub = app.add_subcommand("check",
                                 "Example:\n  attest check --suite smoke --backend eigen --json smoke.jsonl\n\n"
                                 "Compare backends with the reference, on lines, files and suites.");
  sub->add_option("case", options->cases.arguments, "Case lines or .safetensors files");
  sub->add_option("--suite", options->cases.suites, "A committed suite by name; may be repeated");
  sub->add_option("--suite-file", options->cases.suite_files, "Anyone's file of case lines; may be repeated");
  add_backend_options(*sub, options->backend);
  add_plugin_options(*sub, options->backend);
  add_require_option(*sub, options->backend);
  sub->add_option("--filter", options->filter, "ECMAScript expression searched in \"backend case-line\"");
  sub->add_option("--shard", options->shard, "i/n: the i-th of n parts of the cases, from 1");
  sub->add_option("--json", options->json, "Write JSON Lines to this file");
  sub->add_option("--junit", options->junit, "Write JUnit XML to this file");
  sub->add_flag("--fail-fast", options->fail_fast, "Stop at the first failure");
  sub->add_flag("--resume", options->resume, "Go on from what an interrupted run left in the file of --json")
      ->needs("--json");
  add_isolation_options(*sub, options->isolation);
  sub->add_flag("--once", options->once,
                "Run each plan once, with nothing before, beside or after it: for simulators and debuggers");
  sub->add_flag("--bitwise", options->bitwise,
                "Also tell whether right results have the same bits in every run, with other threads, and without "
                "the rest of the batch");
  sub->add_flag("--no-shrink", options->no_shrink, "Don't look for the smallest case of the first failures");
  sub->add_option("--shrunk", options->shrunk, "Folder for the smallest files of failing files");
  sub->add_option("--write-refusals", options->refusals,
                  "Write FOLDER/<backend>/expected_refusals of the committed suites that ran, instead of comparing");
  sub->callback([options, &invocation] { invocation.exit_code = run(*options, invocation); });
}

}  // namespace attest
