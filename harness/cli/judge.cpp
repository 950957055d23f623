// attest judge
#include "harness/judge/judge.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <random>

#include "harness/backends/isolation/confined_program.h"
#include "harness/backends/isolation/sandbox.h"
#include "harness/backends/isolation/stranger.h"
#include "harness/backends/plugin/foreign_backends.h"
#include "harness/base/fingerprint.h"
#include "harness/base/output_file.h"
#include "harness/base/text.h"
#include "harness/base/user_error.h"
#include "harness/cli/command.h"
#include "harness/cli/number_range.h"
#include "harness/judge/interpreter.h"
#include "harness/judge/judge_folder.h"
#include "harness/judge/submission_files.h"
#include "harness/page/page.h"

namespace attest {
namespace {

struct JudgeOptions {
  BackendOptions backend;
  std::string submission, task, budget = "60s", secret_seed, baseline, json, page, interpreter;
  int jobs = 0;  ///< 0: not said
  bool one_line = false;
};

/// "90", "90s" or "2m".
double seconds_in(const std::string& text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  const std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  if (error != std::errc() || value <= 0 || !(unit.empty() || unit == "s" || unit == "m"))
    throw UserError("--budget " + text + ": seconds or minutes are wanted, as 60s or 2m");
  return unit == "m" ? 60 * value : value;
}

std::optional<std::uint64_t> whole_number(const std::string& text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size()) return number;
  return std::nullopt;
}

/// A number, what a file or standard input holds, or, where nothing is said, what nobody knows.
std::uint64_t secret_seed(const std::string& said) {
  if (said.empty()) return std::uint64_t{std::random_device{}()} << 32 | std::random_device{}();
  if (const auto number = whole_number(said)) return *number;
  std::ifstream file;
  if (said != "-") file.open(said);
  std::istream& stream = said == "-" ? std::cin : file;
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  if (text.empty()) throw UserError("--secret-seed " + said + ": a number, or a file that can be read, is wanted");
  if (const auto number = whole_number(trimmed(text))) return *number;
  Fingerprint of_text;
  of_text.add(text);
  std::uint64_t seed = 0;
  for (const char c : of_text.text()) seed = seed * 31 + static_cast<unsigned char>(c);
  return seed;
}

int exit_code_of(Judged verdict) {
  switch (verdict) {
    case Judged::pass: return kOk;
    case Judged::unproven: return kNothingChecked;
    case Judged::invalid: return kBadRequest;
    case Judged::fail: break;
  }
  return kFailed;
}

void print(const JudgedSubmission& judged, std::FILE* out) {
  fmt::print(out, "{}{}\n", name_of(judged.verdict), judged.reason.empty() ? "" : ": " + printable_line(judged.reason));
  if (!judged.failing_line.empty()) fmt::print(out, "smallest failing case: {}\n", printable_line(judged.failing_line));
  for (const JudgedSpeed& one : judged.speeds) {
    fmt::print(out, "{}: {}\n", printable_line(one.case_line),
               one.wrong.empty() ? fmt::format("{:.4g} ms", one.seconds * 1e3) : printable_line(one.wrong.text));
  }
  if (const auto speedup = judged.speedup()) fmt::print(out, "{:.3g} times as fast as {}\n", *speedup, judged.baseline);
}

int run_one(const JudgeOptions& options, const Task& task, const Invocation& invocation) {
  JudgeSettings settings;
  settings.budget_seconds = seconds_in(options.budget);
  settings.secret_seed = secret_seed(options.secret_seed);
  settings.threads = options.backend.context().threads;
  settings.baseline = options.baseline;
  settings.limits = options.backend.limits();
  settings.interpreter = options.interpreter;
  settings.progress = [](const std::string& what) { fmt::print(stderr, "{}\n", printable_line(what)); };
  std::optional<OutputFile> file;
  if (!options.json.empty() && options.json != "-") file.emplace(options.json);
  const JudgedSubmission judged = judge(options.submission, task, invocation.registry, settings);
  print(judged, options.json == "-" ? stderr : stdout);
  const std::string json = json_of(judged, task, settings.secret_seed, options.one_line);
  if (options.json == "-") fmt::print("{}\n", json);
  if (file) {
    file->stream() << json << '\n';
    file->finish();
  }
  return exit_code_of(judged.verdict);
}

/// What each judging process is told besides.
std::vector<std::string> words_for_each(const JudgeOptions& options) {
  std::error_code error;
  const std::filesystem::path task = options.task;
  const bool is_file = task.has_extension() || task.has_parent_path();
  std::vector<std::string> words = {
      "--task",    is_file ? std::filesystem::absolute(task, error).string() : options.task,
      "--budget",  options.budget,
      "--timeout", fmt::format("{}", options.backend.timeout_seconds)};
  for (const auto& [option, value] :
       {std::pair{"--baseline", options.baseline}, std::pair{"--interpreter", options.interpreter}}) {
    if (!value.empty()) words.insert(words.end(), {option, value});
  }
  if (options.backend.memory_gib > 0)
    words.insert(words.end(), {"--memory", fmt::format("{}", options.backend.memory_gib)});
  if (options.backend.trust) words.emplace_back("--trust");
  return words;
}

std::string progress_of(const RankedSubmission& one, std::size_t done, std::size_t of) {
  std::string text = fmt::format("{}/{} {}: {}", done, of, one.submission, one.verdict);
  if (one.speedup) text += fmt::format(", {:.3g} times as fast as {}", *one.speedup, one.baseline);
  if (!one.reason.empty()) text += ": " + one.reason;
  return printable_line(text);
}

int run_folder(const JudgeOptions& options, const Task& task, const Invocation& invocation) {
  FolderSettings settings;
  settings.words = words_for_each(options);
  settings.budget_seconds = seconds_in(options.budget);
  settings.jobs = std::max(1, options.jobs);
  settings.threads = options.backend.threads;
  settings.told = [](const RankedSubmission& one, std::size_t done, std::size_t of) {
    fmt::print(stderr, "{}\n", progress_of(one, done, of));
  };
  if (!options.page.empty() && (options.json.empty() || options.json == "-"))
    throw UserError("--page " + options.page + ": a page shows a file of results; name one with --json");
  ResultLines lines(options.json);
  if (options.secret_seed.empty() && !lines.earlier().empty()) {
    throw UserError(options.json +
                    ": has judgements already, and their seed is known to nobody; say it with --secret-seed, or name "
                    "another file");
  }
  settings.secret_seed = secret_seed(options.secret_seed);
  const FolderOutcome outcome = judge_folder(options.submission, task, settings, lines);
  fmt::print(options.json == "-" ? stderr : stdout, "{}", ranking_table(ranked(outcome.judgements)));
  for (const std::string& one : outcome.not_judged) fmt::print(stderr, "not judged: {}\n", one);
  if (outcome.interrupted) {
    fmt::print(stderr, "interrupted; the same command goes on where it ended\n");
    return kInterrupted;
  }
  if (!options.page.empty()) {
    OutputFile page(options.page);
    page.write(results_page(read_results({options.json}), invocation.words));
    page.finish();
  }
  return outcome.not_judged.empty() ? kOk : kFailed;
}

int run(const JudgeOptions& options, const Invocation& invocation) {
  hide_memory();                                    // the seed is in it
  if (python_objects().make) need_interpreter("");  // nor does what this starts import what lies in the current folder
  const Task task = read_task(options.task, options.interpreter);
  std::error_code error;
  const bool is_folder = std::filesystem::is_directory(options.submission, error);
  if (is_folder && !options.one_line && !is_one_submission(options.submission))
    return run_folder(options, task, invocation);
  for (const auto& [option, said] :
       {std::pair{"--page", !options.page.empty()}, std::pair{"--jobs", options.jobs > 0}}) {
    if (said)
      throw UserError(std::string(option) + ": " + options.submission +
                      " is one submission; this is for a folder of them");
  }
  return run_one(options, task, invocation);
}

}  // namespace

void add_judge(CLI::App& app, Invocation& invocation) {
  const auto options = std::make_shared<JudgeOptions>();
  options->backend.sandbox = true;
  auto* sub = add_command(app, "judge",
                          "Judge a stranger's file, or each in a folder, on a task: in a sandbox, on cases drawn from "
                          "a secret, timed from outside.",
                          "attest judge kernel.c --task decode --json -");
  sub->add_option("submission", options->submission,
                  "A file .c, .cc, .cpp, .so or .py, the last with :object behind it or without; a solution .json of "
                  "FlashInfer-Bench; a folder with a file "
                  "called submission; or a folder of such files and folders")
      ->type_name("PATH")
      ->required();
  sub->add_option("--task", options->task,
                  "A task of attest by its name, a file .task, or a problem of a board: a definition .json of "
                  "FlashInfer-Bench, a problem .py of KernelBench, a task.yml of GPU MODE")
      ->required();
  sub->add_option("--budget", options->budget, "How long all of it may take, about: 60s, 2m; of a folder each");
  sub->add_option("--secret-seed", options->secret_seed,
                  "Draws the cases: a number, a file with a text, or - for standard input; default: the system's "
                  "randomness");
  sub->add_option("--baseline", options->baseline, "The backend whose speed is the measure; default: eigen")
      ->type_name("BACKEND");
  sub->add_option("--json", options->json,
                  "Write the judgement to this file; - is standard output. Of a folder a line for each, behind those "
                  "that the file has; what has one of the same task, seed and content is not judged again")
      ->type_name("FILE");
  sub->add_option("--page", options->page, "Of a folder: write the ranking as a page, too; with --json FILE")
      ->type_name("FILE");
  sub->add_option("--jobs", options->jobs,
                  "Of a folder: judge so many at a time, each on processors of its own; default: 1")
      ->check(CLI::Range(1, 1024));
  sub->add_option("--interpreter", options->interpreter,
                  "For Python: an interpreter that has attest as a module; default: python3")
      ->type_name("PROGRAM");
  sub->add_flag("--one-line", options->one_line, "One submission, whatever it is, and its JSON on one line")->group("");
  sub->add_option("--threads", options->backend.threads,
                  "Threads that it is given; default: every processor that it has")
      ->check(CLI::Range(1, 1024));
  sub->add_option("--timeout", options->backend.timeout_seconds,
                  "Seconds that one step may take; never more than a share of the budget")
      ->check(number_range(0.001, 86400.0));
  sub->add_option("--memory", options->backend.memory_gib, "GiB that it may take beyond what it starts with")
      ->check(number_range(0.001, 1e6));
  sub->add_flag("--trust", options->backend.trust, "Run it even where the system lacks parts of the sandbox");
  sub->callback([options, &invocation] { invocation.exit_code = run(*options, invocation); });
}

void add_confined(CLI::App& app, Invocation& invocation) {
  struct Options {
    ConfinedProgram program;
    std::string layers, scratch;
    std::vector<std::string> readable;
  };
  const auto options = std::make_shared<Options>();
  auto* sub = app.add_subcommand("confined", "A program of others in a sandbox")->group("")->footer("");
  sub->add_option("--sandbox", options->layers);
  sub->add_option("--scratch", options->scratch);
  sub->add_option("--readable", options->readable)->allow_extra_args(false);
  sub->add_flag("--trust", options->program.sandbox.trust);
  sub->add_option("words", options->program.words)->required();
  sub->callback([options, &invocation] {
    ConfinedProgram& program = options->program;
    program.sandbox.layers = layers_from_text(options->layers);
    program.scratch = options->scratch;
    program.readable.assign(options->readable.begin(), options->readable.end());
    invocation.exit_code = become_confined(program);
  });
}

}  // namespace attest
