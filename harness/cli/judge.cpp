// attest judge
#include "harness/judge/judge.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <fstream>
#include <iostream>
#include <memory>
#include <random>

#include "harness/backends/isolation/confined_program.h"
#include "harness/backends/isolation/sandbox.h"
#include "harness/base/fingerprint.h"
#include "harness/base/output_file.h"
#include "harness/base/text.h"
#include "harness/base/user_error.h"
#include "harness/cli/command.h"
#include "harness/cli/number_range.h"

namespace attest {
namespace {

struct JudgeOptions {
  BackendOptions backend;
  std::string submission, task, budget = "60s", secret_seed, baseline, json;
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

/// A number, what a file or standard input holds, or, where nothing is said, what nobody knows.
std::uint64_t secret_seed(const std::string& said) {
  std::uint64_t number = 0;
  if (said.empty()) return std::uint64_t{std::random_device{}()} << 32 | std::random_device{}();
  const auto [end, error] = std::from_chars(said.data(), said.data() + said.size(), number);
  if (error == std::errc() && end == said.data() + said.size()) return number;
  std::ifstream file;
  if (said != "-") file.open(said);
  std::istream& stream = said == "-" ? std::cin : file;
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  if (text.empty()) throw UserError("--secret-seed " + said + ": a number, or a file that can be read, is wanted");
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

int run(const JudgeOptions& options, const Invocation& invocation) {
  const Task task = read_task(options.task);
  JudgeSettings settings;
  settings.budget_seconds = seconds_in(options.budget);
  settings.secret_seed = secret_seed(options.secret_seed);
  settings.threads = options.backend.context().threads;
  settings.baseline = options.baseline;
  settings.limits = options.backend.limits();
  settings.progress = [](const std::string& what) { fmt::print(stderr, "{}\n", printable_line(what)); };
  std::optional<OutputFile> file;
  if (!options.json.empty() && options.json != "-") file.emplace(options.json);
  const JudgedSubmission judged = judge(options.submission, task, invocation.registry, settings);
  print(judged, options.json == "-" ? stderr : stdout);
  const std::string json = json_of(judged, task);
  if (options.json == "-") fmt::print("{}\n", json);
  if (file) {
    file->stream() << json << '\n';
    file->finish();
  }
  return exit_code_of(judged.verdict);
}

}  // namespace

void add_judge(CLI::App& app, Invocation& invocation) {
  const auto options = std::make_shared<JudgeOptions>();
  options->backend.sandbox = true;
  auto* sub = add_command(app, "judge",
                          "Judge a stranger's file on a task: in a sandbox, on cases drawn from a secret, timed from "
                          "outside.",
                          "attest judge kernel.c --task decode --json -");
  sub->add_option("submission", options->submission,
                  "A file .c, .cc, .cpp, .so or .py, the last with :object behind it")
      ->type_name("FILE")
      ->required();
  sub->add_option("--task", options->task, "A task of attest by its name, or a file .task")->required();
  sub->add_option("--budget", options->budget, "How long it may take, about: 60s, 2m");
  sub->add_option("--secret-seed", options->secret_seed,
                  "Draws the cases: a number, a file with a text, or - for standard input; default: the system's "
                  "randomness");
  sub->add_option("--baseline", options->baseline, "The backend whose speed is the measure; default: eigen")
      ->type_name("BACKEND");
  sub->add_option("--json", options->json, "Write the judgement to this file; - is standard output")->type_name("FILE");
  sub->add_option("--threads", options->backend.threads, "Threads that it is given; default: every core")
      ->check(CLI::Range(1, 1024));
  sub->add_option("--timeout", options->backend.timeout_seconds, "Seconds that one step, or compiling, may take")
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
