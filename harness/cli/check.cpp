// attest check
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <thread>

#include "harness/backends/set/backend_set.h"
#include "harness/base/data_folder.h"
#include "harness/base/fingerprint.h"
#include "harness/base/output_file.h"
#include "harness/base/run_words.h"
#include "harness/base/text.h"
#include "harness/base/user_error.h"
#include "harness/cases/memory.h"
#include "harness/cli/command.h"
#include "harness/cli/verdict_files.h"
#include "harness/cli/watch.h"
#include "harness/mpi/agreement.h"
#include "harness/mpi/exit_message.h"
#include "harness/report/run_tally.h"
#include "harness/run/check_run.h"
#include "harness/run/last_failures.h"
#include "harness/run/run_conditions.h"
#include "harness/verdict/committed_lists.h"
#include "harness/verdict/plan_life.h"
#include "harness/verdict/refusal_lists.h"

namespace attest {
namespace {

struct CheckOptions {
  BackendOptions backend;
  IsolationFlags isolation;
  CaseNames cases;
  VerdictFiles files;
  std::string steps, filter, shard, shrunk, refusals, annotations;
  bool fail_fast = false, no_shrink = false, resume = false, once = false, bitwise = false, list = false;
  bool last_failed = false, failed_first = false, watch = false;
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

/// The places of cases, as a CI finds their files: from the folder that attest runs in.
std::function<CasePlace(const Verdict&)> places_of(const std::vector<CaseList>& lists) {
  std::map<std::pair<std::string, std::string>, CasePlace> places;
  for (const CaseList& list : lists) {
    const std::string path = list.path.empty() ? "" : seen_from_here(list.path).string();
    for (const Case& one : list.cases) {
      const std::string file = path.empty() && one.from_file ? one.label : path;
      places[{list.suite, one.label}] = {file, one.line};
    }
  }
  return [places = std::move(places)](const Verdict& v) {
    const auto found = places.find({v.suite, v.case_line});
    return found == places.end() ? CasePlace() : found->second;
  };
}

/// Files are opened before anything runs, so that an unwritable path costs nothing.
std::vector<std::unique_ptr<Report>> open_reports(const CheckOptions& options, const std::vector<CaseList>& cases) {
  std::error_code error;
  if (!options.shrunk.empty()) std::filesystem::create_directories(options.shrunk, error);
  if (error) throw UserError("--shrunk " + options.shrunk + ": " + error.message() + "; name another folder");
  std::vector<std::unique_ptr<Report>> reports = open_reports(options.files);
  if (!options.annotations.empty()) reports.push_back(github_annotations(options.files.console(), places_of(cases)));
  return reports;
}

/// A run that began anew and came to its end stands for all that killed ones had left under its names: --resume would
/// go on from that, too. The parts of JUnit hold nothing.
void remove_what_is_replaced(const CheckOptions& options, const CheckOutcome& outcome) {
  if (outcome.interrupted || !outcome.unwritten.empty()) return;
  if (!options.files.json.empty() && !options.files.json_on_stdout() && !options.resume)
    remove_abandoned_parts(options.files.json);
  if (!options.files.junit.empty()) remove_abandoned_parts(options.files.junit);
}

/// Of a run without a pass or a failure.
const char* why_nothing_passed(const Counts& counts) {
  if (counts.weak > 0) return "little is proved: most bounds of what passed are as large as the values";
  if (counts.inconclusive > 0)
    return "nothing passed: what ran is inconclusive, its bounds are too wide to prove anything";
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
  if (counts.proved() > 0) return kOk;
  fmt::print(stderr, "attest: {}\n", why_nothing_passed(counts));
  return kNothingChecked;
}

/// What a share is of, so that it can be had again.
void tell_share(const CheckOptions& options, const std::vector<CaseList>& lists) {
  for (const CaseList& list : lists) {
    if (list.of_cases == 0 || options.files.output.quiet) continue;
    fmt::print(options.files.console(), "share {} of {}, seed {}: {} of {} cases\n", options.cases.share,
               printable_line(list.suite), options.cases.seed, list.cases.size(), list.of_cases);
  }
}

/// How the last run decides what this one checks.
void tell_last_failures(const CheckOptions& options, const LastFailures& failures, const std::vector<CaseList>& lists) {
  if ((!options.last_failed && !options.failed_first) || options.files.output.quiet) return;
  const std::size_t failed = failures.cases_in(lists);
  if (failed == 0)
    fmt::print(options.files.console(), "none of these cases failed in the last run of {}: all are checked\n",
               printable_line(options.files.json));
  else
    fmt::print(options.files.console(), "{} case{} failed in the last run of {}: {}\n", failed, failed == 1 ? "" : "s",
               printable_line(options.files.json), options.last_failed ? "no other is checked" : "checked first");
}

/// Prints the lines that a run would check, each once: what `attest check -` takes.
int list_cases(const CheckOptions& options, const std::vector<CaseList>& lists, const BackendSet& backends) {
  const Filter filter(options.filter);
  const std::vector<bool> own = own_cases(Shard(options.shard), lists);
  const std::vector<Backend*> all = backends.all();
  const auto kept = [&](const Case& one) {
    return (one.golden && filter.keeps("reference " + one.label)) ||
           std::any_of(all.begin(), all.end(), [&](const Backend* backend) {
             return filter.keeps(backend->identity().name + " " + one.label);
           });
  };
  std::set<std::string> listed;
  std::size_t number = 0;
  for (const CaseList& list : lists) {
    for (const Case& one : list.cases) {
      if (!own[number++] || !kept(one) || !listed.insert(one.label).second) continue;
      fmt::print("{}\n", printable_line(one.label));
    }
  }
  if (!listed.empty()) return kOk;
  fmt::print(stderr, "attest: nothing to check: the filter or shard left no case\n");
  return kNothingChecked;
}

/// The failures in the file that this run is to replace.
LastFailures last_failures(const CheckOptions& options) {
  return options.last_failed || options.failed_first ? LastFailures(options.files.json) : LastFailures();
}

/// The cases in the order of the run, those of --last-failed alone.
std::vector<CaseList> selected(std::vector<CaseList> lists, const CheckOptions& options, const LastFailures& failures) {
  if (options.last_failed) failures.keep(lists);
  if (options.failed_first) failures.put_first(lists);
  return lists;
}

/// What a run is made of, the same on every rank.
struct Parts {
  Parts(const CheckOptions& options, const Invocation& invocation)
      : failures(last_failures(options)),
        cases(selected(load(options.cases), options, failures)),
        context(options.backend.context()),
        isolation(options.isolation.options(options.backend)),
        plugins(options.backend.sources(), invocation.registry, options.backend.limits()),
        libraries(loaded_libraries()),
        backends(plugins.entries(), options.backend.list(plugins), context, isolation) {
    backends.require(options.backend.required());
    if (!isolation) backends.isolate_fresh({});
    (void)Filter(options.filter);  // what can't be read is told before anything is opened
    (void)Shard(options.shard);
    (void)steps_from_text(options.steps);
    if (options.once) run_words().of_check = {"--once"};
    if (options.list) return;
    require_lists_of(backends, options);
    others = other_threads(options, plugins);
  }

  LastFailures failures;
  std::vector<CaseList> cases;
  Context context;
  std::optional<IsolationOptions> isolation;
  Plugins plugins;
  std::vector<std::filesystem::path> libraries;  ///< before there were backends
  BackendSet backends;
  std::vector<BackendSet> others;
};

CheckSettings settings_of(const CheckOptions& options, const Parts& parts, const Invocation& invocation,
                          const Ranks* ranks) {
  CheckSettings settings;
  settings.filter = options.filter;
  settings.shard = options.shard;
  settings.threads = parts.context.threads;
  settings.fail_fast = options.fail_fast;
  settings.isolated = parts.isolation.has_value();
  settings.once = options.once;
  settings.seed = options.cases.seed;
  settings.steps = options.steps;
  settings.bitwise = options.bitwise;
  settings.shrink = !options.no_shrink;
  settings.shrunk_folder = options.shrunk;
  settings.compare_refusals = options.refusals.empty();
  settings.command = invocation.words;
  if (!options.files.json.empty()) {
    settings.conditions =
        run_conditions(parts.backends, parts.context, parts.isolation, options.bitwise, parts.libraries,
                       ranks ? ranks->libraries() : std::vector<std::filesystem::path>());
    if (options.once) settings.conditions["plans"] = "run once";
    if (!options.steps.empty()) settings.conditions["steps"] = options.steps;
  }
  return settings;
}

void require_same_run(Ranks& ranks, const Parts& parts) {
  std::string backends;
  for (Backend* backend : parts.backends.all()) backends += (backends.empty() ? "" : ",") + backend->identity().name;
  require_same(
      ranks, {{"backends", backends}, {"cases", fingerprint_of(parts.cases)}},
      {{"backends", "name with --backend what all of them have"}, {"cases", "give every machine the same files"}});
}

/// How an interrupted run is gone on with.
std::string resume_hint(const CheckOptions& options) {
  return "the same command with --resume goes on" +
         std::string(options.files.json.empty() ? ", if it has --json FILE" : "");
}

/// The exit code of a rank when its share is done; of rank 0 that of the job. A rank that can't wait for another ends
/// here.
int end_on_ranks(const CheckOptions& options, const Ranks& ranks, const CheckOutcome& outcome, int exit_code) {
  if ((outcome.interrupted || outcome.still_running) && ranks.rank() == 0) {
    fmt::print(stderr, "attest: interrupted: a rank has died, or the job was asked to end; {}\n", resume_hint(options));
  }
  // Rank 0 prints an exit message, unless its machine is gone, too.
  if (outcome.still_running && ranks.rank() == 1 && ranks.local_rank() == 0)
    fmt::print(stderr, "attest: rank 0 is gone; {}\n", resume_hint(options));
  if (outcome.still_running) {
    std::fflush(stdout);
    std::_Exit(kInterrupted);
  }
  return exit_code;
}

/// Files whose change means that there is something new to check: those of backends, and of cases.
std::vector<std::filesystem::path> files_to_watch(const CheckOptions& options) {
  std::vector<std::filesystem::path> files(options.backend.plugins.begin(), options.backend.plugins.end());
  for (const std::string& object : options.backend.objects) {
    const std::filesystem::path file = object.substr(0, object.rfind(':'));
    if (file.extension() != ".py")
      throw UserError("--watch: " + object + " names a module and no file; name it as FILE.py:OBJECT");
    files.push_back(file);
  }
  files.insert(files.end(), options.cases.suite_files.begin(), options.cases.suite_files.end());
  if (files.empty()) throw UserError("--watch: no file is named; name one with --plugin, --python or --suite-file");
  return files;
}

int run(const CheckOptions& options, const Invocation& invocation, Ranks* ranks) {
  const bool leads = !ranks || ranks->rank() == 0;
  if (options.resume && options.files.json_on_stdout())
    throw CommonError("--resume goes on from a file: name one for --json");
  if ((options.last_failed || options.failed_first) && options.files.json_on_stdout())
    throw CommonError("--last-failed and --failed-first read the last run's file: name one for --json");
  if (options.resume && !options.backend.objects.empty())
    throw CommonError("--resume: whether a module of Python is still the same can't be told; begin anew, without it");
  if (ranks && ranks->size() > 1 && std::count(options.cases.arguments.begin(), options.cases.arguments.end(), "-") > 0)
    throw CommonError("standard input reaches rank 0 alone; write the case lines to a file, for --suite-file");
  std::optional<Parts> parts;
  take_together(ranks, [&] { parts.emplace(options, invocation); });
  if (options.list) return leads ? list_cases(options, parts->cases, parts->backends) : kOk;
  CheckSettings settings = settings_of(options, *parts, invocation, ranks);
  if (ranks) {
    require_same_run(*ranks, *parts);
    settings.conditions = facts_of_all(*ranks, settings.conditions);
  }
  EarlierRun earlier;
  std::vector<std::unique_ptr<Report>> reports;
  take_together(ranks, [&] {
    if (options.resume && leads) earlier = EarlierRun(options.files.json, settings.conditions);
    if (leads) parts->failures.hold_in(earlier);
    if (leads) reports = open_reports(options, parts->cases);
  });
  if (leads) tell_share(options, parts->cases);
  if (leads) tell_last_failures(options, parts->failures, parts->cases);
  if (leads && parts->isolation && !options.files.output.quiet)
    fmt::print(options.files.console(), "{}\n{}", limits_text(*parts->isolation), sandbox_line(parts->backends));
  CheckRun check(settings, std::move(parts->cases), parts->backends, parts->others, std::move(earlier),
                 std::move(reports));
  std::optional<ExitMessage> exit_message;
  if (ranks && leads) exit_message.emplace("attest: rank 0 has ended before its time; " + resume_hint(options));
  const CheckOutcome outcome = ranks ? check.run(*ranks) : check.run();
  exit_message.reset();
  if (!leads) return end_on_ranks(options, *ranks, outcome, kOk);
  remove_what_is_replaced(options, outcome);
  for (const std::string& note : outcome.notes)
    fmt::print(stderr, "attest: not made smaller: {}\n", printable_line(note));
  if (!options.files.output.quiet) {
    for (const std::string& waiver : unneeded_waivers(outcome.committed))
      fmt::print(options.files.console(), "{}\n", printable_line(waiver));
  }
  if (outcome.unshrunk_files > 0) {
    fmt::print(options.files.console(), "--shrunk FOLDER writes the smallest file that fails for each failing file\n");
  }
  if (!options.refusals.empty() && !outcome.interrupted) {
    for (const auto& path : write_refusals(options.refusals, outcome.committed))
      fmt::print(options.files.console(), "wrote {}\n", printable_line(path.string()));
  }
  const int exit_code = exit_code_of(outcome);
  return ranks ? end_on_ranks(options, *ranks, outcome, exit_code) : exit_code;
}

}  // namespace

void add_check(CLI::App& app, Invocation& invocation) {
  const auto options = std::make_shared<CheckOptions>();
  auto* sub = add_command(app, "check", "Compare backends with the reference, on lines, files and suites.",
                          "attest check --suite smoke --backend eigen --json smoke.jsonl");
  sub->add_option("case", options->cases.arguments,
                  "Case lines or .safetensors files; - reads case lines from standard input")
      ->type_name("CASE");
  sub->add_option("--suite", options->cases.suites, "A committed suite by name; may be repeated")->type_name("SUITE");
  sub->add_option("--suite-file", options->cases.suite_files, "Anyone's file of case lines; may be repeated")
      ->type_name("FILE");
  add_backend_options(*sub, options->backend, BackendCount::any);
  add_plugin_options(*sub, options->backend);
  add_require_option(*sub, options->backend);
  add_ranks_option(*sub, options->backend);
  sub->add_option("--filter", options->filter, "ECMAScript expression searched in \"backend case-line\"");
  sub->add_option("--share", options->cases.share, "n/m: so much of each suite, drawn by --seed: 1/8 of matrix");
  sub->add_option("--seed", options->cases.seed,
                  "Of --share, of generated suites and of the steps of plans: the same seed draws the same");
  sub->add_option("--shard", options->shard, "i/n: the i-th of n parts of the cases that cost about the same, from 1");
  sub->add_flag("--list", options->list, "Print the lines that would be checked, and check nothing");
  add_verdict_files(*sub, options->files);
  sub->add_option("--annotations", options->annotations, "Print a command for each failure that this CI shows")
      ->check(CLI::IsMember({"github"}));
  sub->add_flag("--watch", options->watch,
                "Begin again when a file of --plugin, --python or --suite-file changes, until interrupted; default "
                "suite: smoke");
  sub->add_flag("--fail-fast", options->fail_fast, "Stop at the first failure");
  sub->add_flag("--resume", options->resume, "Go on from what an interrupted run left in the file of --json")
      ->needs("--json");
  auto* last_failed =
      sub->add_flag("--last-failed", options->last_failed,
                    "Only cases that failed in the last run, as the file of --json tells; all where none did")
          ->needs("--json")
          ->excludes("--resume");
  sub->add_flag("--failed-first", options->failed_first, "Cases that failed in the last run before the others")
      ->needs("--json")
      ->excludes("--resume")
      ->excludes(last_failed);
  add_isolation_options(*sub, options->backend, options->isolation);
  sub->add_flag("--once", options->once,
                "Run each plan once, with nothing before, beside or after it: for simulators and debuggers");
  add_steps_option(*sub, options->steps);
  sub->add_flag("--bitwise", options->bitwise,
                "Also tell whether right results have the same bits in every run, with other threads, and without "
                "the rest of the batch");
  sub->add_flag("--no-shrink", options->no_shrink, "Don't look for the smallest case of the first failures");
  sub->add_option("--shrunk", options->shrunk, "Folder for the smallest files of failing files")->type_name("FOLDER");
  sub->add_option("--write-refusals", options->refusals,
                  "Write FOLDER/<backend>/expected_refusals of the committed suites that ran, instead of comparing")
      ->type_name("FOLDER");
  add_to_footer(*sub, std::string("Columns of the table:\n") + kColumnsOfCheck);
  sub->callback([options, &invocation] {
    if (options->watch) {
      const CaseNames& named = options->cases;
      const bool nothing = named.arguments.empty() && named.suites.empty() && named.suite_files.empty();
      invocation.exit_code =
          run_at_each_change(files_to_watch(*options),
                             nothing ? std::vector<std::string>{"--suite", "smoke"} : std::vector<std::string>{});
      return;
    }
    invocation.exit_code = run_on_ranks(invocation, options->backend, Oversubscription::is_told,
                                        [&](Ranks* ranks) { return run(*options, invocation, ranks); });
  });
}

}  // namespace attest
