#include "harness/cli/cli.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <thread>

#include "harness/base/user_error.h"
#include "harness/isolation/worker.h"
#include "reference/nearest.h"

namespace attest {

std::atomic<bool> interrupted{false};

Context CommonOptions::context() const {
  const int all = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  return {threads > 0 ? threads : all, device};
}

namespace {

std::optional<IsolationOptions> isolation_of(bool isolate, double timeout_seconds, double memory_gib) {
  if (!isolate) return std::nullopt;
  return IsolationOptions{std::chrono::milliseconds(static_cast<std::int64_t>(timeout_seconds * 1000)), memory_gib};
}

}  // namespace

std::optional<IsolationOptions> CheckOptions::isolation() const {
  return isolation_of(isolate, timeout_seconds, memory_gib);
}
std::optional<IsolationOptions> FuzzOptions::isolation() const {
  return isolation_of(isolate, timeout_seconds, memory_gib);
}

namespace {

void on_signal(int) { interrupted = true; }

void add_common(CLI::App& app, CommonOptions& options) {
  app.add_option("--backend", options.backends, "Names, comma separated; default: all that can be had");
  app.add_option("--threads", options.threads, "Threads of each backend; default: every core")
      ->check(CLI::Range(1, 1024));
  app.add_option("--device", options.device, "Part of an OpenCL device's or platform's name");
}

template <class Options>
void add_isolation(CLI::App& app, Options& options) {
  auto* isolate = app.add_flag("--isolate", options.isolate,
                               "Run each backend in a process of its own, its tensors between inaccessible pages");
  app.add_option("--timeout", options.timeout_seconds, "Seconds that one step may take (with --isolate)")
      ->check(CLI::Range(0.001, 86400.0))
      ->needs(isolate);
  app.add_option("--memory", options.memory_gib, "GiB that a backend may take beyond what it starts with")
      ->check(CLI::Range(0.001, 1e6))
      ->needs(isolate);
}

/// The command as a file of results keeps it: the folders of one machine are left out.
std::vector<std::string> portable_command(int argc, const char* const* argv) {
  std::vector<std::string> words = {"attest"};
  for (int n = 1; n < argc; ++n) {
    const std::string word = argv[n];
    const bool option = word.starts_with("--") && word.find('=') != std::string::npos;  // --json=/a/folder/file
    const std::size_t start = option ? word.find('=') + 1 : 0;
    const std::filesystem::path value = word.substr(start);
    words.push_back(word.substr(0, start) + (value.is_absolute() ? value.filename() : value).string());
  }
  return words;
}

/// Becomes the program `name` that lies beside this one.
int run_beside(const std::string& name, const std::vector<std::string>& arguments) {
  const auto path = std::filesystem::read_symlink("/proc/self/exe").parent_path() / name;
  std::vector<std::string> words = {path.string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  execv(path.c_str(), pointers.data());
  throw UserError(name + " is not beside attest: it is built with the tests (-DATTEST_TESTS=ON), not installed");
}

constexpr const char* kExamples = R"(Examples:
  attest check "heads=8/2 seq=33x65 dim=64 causal align=bottom-right"
  attest check --suite smoke
  attest bench "heads=8 seq=1024 dim=64" --threads 2

attest tells whether an implementation of scaled dot-product attention is right, and how fast it is.
)";

/// The whole command line, with the places its values go to.
struct Parser {
  CLI::App app{kExamples, "attest"};
  CheckOptions check;
  BenchOptions bench;
  TraceOptions trace;
  ExplainOptions explain;
  ShrinkOptions shrink;
  CompareOptions compare;
  FuzzOptions fuzz;
  WorkerOptions worker;
  ListOptions list;

  Parser() {
    app.require_subcommand(1);
    app.set_version_flag("--version", ATTEST_VERSION);
    app.formatter(std::make_shared<CLI::Formatter>());
    define_check();
    define_bench();
    define_others();
    define_shrink();
    define_compare();
    define_fuzz();
    define_mutants();
    define_worker();
  }

  void define_check() {
    auto* sub = app.add_subcommand("check",
                                   "Example:\n  attest check --suite smoke --backend eigen --json smoke.jsonl\n\n"
                                   "Compare backends with the reference, on lines, files and suites.");
    sub->add_option("case", check.cases, "Case lines or .safetensors files");
    sub->add_option("--suite", check.suites, "A committed suite by name; may be repeated");
    sub->add_option("--suite-file", check.suite_files, "Anyone's file of case lines; may be repeated");
    add_common(*sub, check.common);
    sub->add_option("--filter", check.filter, "ECMAScript expression searched in \"backend case-line\"");
    sub->add_option("--shard", check.shard, "i/n: the i-th of n parts of the cases, from 1");
    sub->add_option("--json", check.json, "Write JSON Lines to this file");
    sub->add_option("--junit", check.junit, "Write JUnit XML to this file");
    sub->add_flag("--fail-fast", check.fail_fast, "Stop at the first failure");
    sub->add_flag("--resume", check.resume, "Go on from what an interrupted run left in the file of --json")
        ->needs("--json");
    add_isolation(*sub, check);
    sub->add_flag("--bitwise", check.bitwise,
                  "Also tell whether right results have the same bits in every run, with other threads, and without "
                  "the rest of the batch");
    sub->add_flag("--no-shrink", check.no_shrink, "Don't look for the smallest case of the first failures");
    sub->add_option("--shrunk", check.shrunk, "Folder for the smallest files of failing files");
  }

  void define_bench() {
    auto* sub = app.add_subcommand("bench",
                                   "Example:\n  attest bench \"heads=8 seq=1024 dim=64\" --threads 2\n\n"
                                   "Time backends on cases whose results were right, interleaved.");
    sub->add_option("case", bench.cases, "Case lines");
    sub->add_option("--suite", bench.suites, "A suite by name; may be repeated");
    add_common(*sub, bench.common);
    sub->add_option("--filter", bench.filter, "ECMAScript expression searched in \"backend case-line\"");
    sub->add_option("--json", bench.json, "Write Google Benchmark JSON to this file");
    sub->add_option("--repetitions", bench.repetitions, "Interleaved samples per backend and case")
        ->check(CLI::Range(1, 1000));
    sub->add_option("--min-time", bench.min_seconds, "Seconds per sample, at least")->check(CLI::Range(0.0, 60.0));
  }

  void define_others() {
    auto* sub = app.add_subcommand("list", "Example:\n  attest list backends\n\nShow what there is.");
    sub->add_option("what", list.what,
                    "backends, conventions and arithmetic (each statement probed), semantics (beside other libraries), "
                    "suites or cases")
        ->required();
    sub->add_flag("--json", list.json, "backends as JSON, with the conventions they state");
    sub->add_option("--backend", list.common.backends,
                    "Only these, separated by commas (conventions, arithmetic, semantics)");
    sub->add_option("--suite", list.suites, "Suites whose cases to show");
    sub->add_option("--device", list.common.device, "Part of an OpenCL device's or platform's name");

    sub = app.add_subcommand("trace",
                             "Example:\n  attest trace the_cat_sat_on_mat --svg cat.svg\n\n"
                             "Walk through one case, stage by stage.");
    sub->add_option("what", trace.what, "A walkthrough's name, language_model, a case line or a .safetensors file")
        ->required();
    sub->add_flag("--causal", trace.causal, "Add the causal mask");
    sub->add_option("--json", trace.json, "Write every stage to this file");
    sub->add_option("--svg", trace.svg, "Draw the weights, with and without the causal mask");
    sub->add_option("--text", trace.text, "language_model: the words");
    sub->add_option("--norm", trace.norm, "language_model: pre or post");
    sub->add_option("--positions", trace.positions, "language_model: sinusoidal or learned");
    sub->add_option("--activation", trace.activation, "language_model: gelu or relu");
    sub->add_option("--backend", trace.common.backends, "language_model: run the attention with this backend too");

    sub = app.add_subcommand("explain",
                             "Example:\n  attest explain \"seq=64 dim=64\" --backend eigen\n\n"
                             "The worst elements of a case: got, expected, and the bound term by term.");
    sub->add_option("case", explain.what, "A case line or a .safetensors file")->required();
    add_common(*sub, explain.common);
    sub->add_option("--elements", explain.elements, "How many of the worst to show")->check(CLI::Range(1, 100));
  }

  void define_shrink() {
    auto* sub =
        app.add_subcommand("shrink",
                           "Example:\n  attest shrink \"heads=8 seq=65x300 dim=64 softcap=30\" --backend mine\n\n"
                           "The smallest case that still fails, and the command that repeats it.");
    sub->add_option("case", shrink.what, "A case line or .safetensors file on which the backend fails")->required();
    sub->add_option("--out", shrink.out, "Where the smallest case of a file goes, as a file");
    add_common(*sub, shrink.common);
    sub->add_option("--budget", shrink.budget_seconds, "Seconds after which to stop")->check(CLI::Range(0.0, 3600.0));
  }

  void define_compare() {
    auto* sub =
        app.add_subcommand("compare",
                           "Example:\n  attest compare old.json new.json --margin 0.05\n\n"
                           "Two results of `attest bench --json`: faster, slower, same or ambiguous, case by case.\n"
                           "Two folders: files of the same name were measured in turn, and are paired.");
    sub->add_option("old", compare.before, "A benchmark file, or a folder of them")->required();
    sub->add_option("new", compare.now, "Another")->required();
    sub->add_option("--margin", compare.margin, "What counts as the same, as a fraction")->check(CLI::Range(0.0, 10.0));
    sub->add_option("--confidence", compare.confidence, "Of the interval")->check(CLI::Range(0.5, 0.9999));
  }

  void define_fuzz() {
    auto* sub = app.add_subcommand("fuzz",
                                   "Example:\n  attest fuzz --backend mine --time 60s --seed 1\n\n"
                                   "Random cases and neighbours of those closest to their bound; failures made small.");
    add_common(*sub, fuzz.common);
    sub->add_option("--time", fuzz.seconds, "For how long: 60s, 5m")
        ->transform(CLI::AsNumberWithUnit(std::map<std::string, double>{{"s", 1}, {"m", 60}, {"h", 3600}}))
        ->check(CLI::Range(0.01, 1e6));
    sub->add_option("--count", fuzz.count, "Stop after this many cases");
    sub->add_option("--seed", fuzz.seed, "The same seed, the same cases");
    sub->add_option("--out", fuzz.out, "Write the smallest failing cases to this file, for --suite-file");
    add_isolation(*sub, fuzz);
  }

  void define_mutants() {
    app.add_subcommand("mutants",
                       "Is every wrong backend caught? Mistakes and mutants against the suites (built with the tests).")
        ->prefix_command();
  }

  /// Started by IsolatedBackend alone.
  void define_worker() {
    auto* sub = app.add_subcommand("worker", "One backend in a process of its own")->group("");
    sub->add_option("backend", worker.backend)->required();
    sub->add_option("--threads", worker.threads);
    sub->add_option("--device", worker.device);
    sub->add_option("--memory", worker.memory_gib);
  }

  int run(int argc, const char* const* argv, std::span<const BackendEntry> registry) {
    app.parse(argc, argv);
    const std::vector<std::string> command = portable_command(argc, argv);
    if (app.got_subcommand("check")) {
      check.command = command;
      return run_check(check, registry);
    }
    if (app.got_subcommand("bench")) {
      bench.command = command;
      return run_bench(bench, registry);
    }
    if (app.got_subcommand("trace")) return run_trace(trace, registry);
    if (app.got_subcommand("fuzz")) return run_fuzz(fuzz, registry);
    if (app.got_subcommand("compare")) return run_compare(compare);
    if (app.got_subcommand("mutants")) return run_beside("attest-mutants", app.get_subcommand("mutants")->remaining());
    if (app.got_subcommand("worker")) return run_worker(worker, registry);
    if (app.got_subcommand("shrink")) return run_shrink(shrink, registry);
    if (app.got_subcommand("explain")) return run_explain(explain, registry);
    return run_list(list, registry);
  }
};

/// CLI11's message for something it did not expect, with the nearest name it would have taken.
std::string explain_parse_error(const CLI::App& app, const CLI::ParseError& error) {
  std::string message = error.what();
  for (char& c : message) {
    if (c == '\n') c = ' ';
  }
  const CLI::App* sub = app.get_subcommands().empty() ? &app : app.get_subcommands().front();
  for (const std::string& extra : sub->remaining(true)) {
    if (!extra.starts_with("-")) continue;
    std::vector<std::string> names;
    for (const CLI::Option* option : sub->get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
    return "unknown option \"" + extra + "\"; nearest: " + nearest_name(extra, names);
  }
  return message + "; see `attest " + (sub == &app ? std::string() : sub->get_name() + " ") + "--help`";
}

void reject_unknown_subcommand(int argc, const char* const* argv, const CLI::App& app) {
  if (argc < 2 || argv[1][0] == '-') return;
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(sub->get_name());
  if (std::find(names.begin(), names.end(), argv[1]) != names.end()) return;
  throw UserError("unknown subcommand \"" + std::string(argv[1]) + "\"; nearest: " + nearest_name(argv[1], names) +
                  "; see `attest --help`");
}

}  // namespace

int run_command_line(int argc, const char* const* argv, std::span<const BackendEntry> registry) {
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  try {
    Parser parser;
    try {
      reject_unknown_subcommand(argc, argv, parser.app);
      return parser.run(argc, argv, registry);
    } catch (const CLI::Success& done) {
      return parser.app.exit(done);  // --help and --version
    } catch (const CLI::ParseError& error) {
      throw UserError(explain_parse_error(parser.app, error));
    }
  } catch (const UserError& error) {
    std::fprintf(stderr, "attest: %s\n", error.what());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "attest: %s (this is a fault of attest; please report it with the command)\n", error.what());
  }
  return kBadRequest;
}

}  // namespace attest
