// Options that several commands take.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <thread>

#include "harness/backends/isolation/isolated_backend.h"
#include "harness/backends/isolation/memory_watch.h"
#include "harness/backends/set/backend_set.h"
#include "harness/base/backend_source.h"
#include "harness/base/crash_message.h"
#include "harness/base/run_words.h"
#include "harness/base/terminal.h"
#include "harness/base/user_error.h"
#include "harness/cases/case_arguments.h"
#include "harness/cli/command.h"
#include "harness/cli/number_range.h"

namespace attest {

namespace {

/// In the order in which a printed command has them.
constexpr std::pair<const char*, std::string BackendOptions::Stated::*> kStated[] = {
    {"--name", &BackendOptions::Stated::name},
    {"--tensors", &BackendOptions::Stated::tensors},
    {"--keywords", &BackendOptions::Stated::keywords},
    {"--refuses", &BackendOptions::Stated::refuses},
    {"--arithmetic", &BackendOptions::Stated::arithmetic},
    {"--conventions", &BackendOptions::Stated::conventions},
    {"--gradients", &BackendOptions::Stated::gradients}};

}  // namespace

Context BackendOptions::context() const {
  const int all = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  return {threads > 0 ? threads : all, device, group};
}

std::vector<std::string> BackendOptions::sources() const {
  std::vector<std::string> all = plugins;
  std::vector<std::string> words;
  for (const auto& [option, member] : kStated) {
    const std::string& said = stated.*member;
    if (said.empty()) continue;
    if (objects.empty()) throw UserError(std::string(option) + " requires --python: it says something of its object");
    if (said.find('\n') != std::string::npos) throw UserError(std::string(option) + ": one line is wanted");
    words.insert(words.end(), {option, said});
  }
  for (const std::string& object : objects) {
    if (object.empty() || object.find('\n') != std::string::npos)
      throw UserError("--python: module:object or file.py:object is wanted, in one line");
    all.push_back(python_source(object, words));
  }
  return all;
}

void BackendOptions::repeat_in_printed_commands() const {
  RunWords& words = run_words();
  words.of_every_command.clear();
  words.of_check.clear();
  if (threads > 0) words.of_every_command.insert(words.of_every_command.end(), {"--threads", std::to_string(threads)});
  if (!device.empty()) words.of_every_command.insert(words.of_every_command.end(), {"--device", device});
  if (no_isolate) words.of_every_command.emplace_back("--no-isolate");
}

std::vector<std::string> BackendOptions::list(const Plugins& loaded) const {
  return names.empty() ? loaded.names() : split_names(names);
}

std::vector<std::string> BackendOptions::required() const { return split_names(require); }

std::vector<std::string> BackendOptions::one(const std::string& command, const Plugins& loaded) const {
  std::vector<std::string> named = list(loaded);
  if (named.size() == 1) return named;
  std::string choice;
  for (const std::string& name : loaded.names()) choice += (choice.empty() ? "; the plug-in has " : ", ") + name;
  throw UserError(command + " one backend: --backend NAME" + choice);
}

std::optional<IsolationOptions> BackendOptions::isolation() const {
  if (no_isolate && sources().empty()) throw UserError("--no-isolate requires --plugin or --python");
  if (sources().empty() || no_isolate) return std::nullopt;
  return limits();
}

IsolationOptions BackendOptions::limits() const {
  IsolationOptions options{std::chrono::milliseconds(static_cast<std::int64_t>(timeout_seconds * 1000)), memory_gib};
  if (sandbox) options.sandbox.emplace().trust = trust;
  return options;
}

void add_backend_options(CLI::App& app, BackendOptions& options, BackendCount count) {
  app.add_option("--backend", options.names,
                 count == BackendCount::one
                     ? "Name of one backend; not needed where --plugin or --python brings just one"
                     : "Names, comma separated; default: all that can be had, with --plugin all of the plug-in")
      ->type_name("BACKEND");
  app.add_option("--threads", options.threads, "Threads of each backend; default: every core")
      ->check(CLI::Range(1, 1024));
  app.add_option("--device", options.device, "Part of an OpenCL device's or platform's name");
}

void add_plugin_options(CLI::App& app, BackendOptions& options) {
  app.add_option("--plugin", options.plugins, "A shared library with backends; may be repeated")
      ->type_name("FILE")
      ->allow_extra_args(false);  // what follows is a case
  app.add_option("--python", options.objects,
                 "A callable or Backend as module:object or file.py:object, with `python -m attest`; may be repeated")
      ->allow_extra_args(false);
  app.add_option("--name", options.stated.name, "What verdicts call the object of --python");
  app.add_option("--tensors", options.stated.tensors,
                 "What the object of --python is given: numpy, torch, dlpack, or a function from DLPack, as "
                 "jax.dlpack:from_dlpack");
  app.add_option("--keywords", options.stated.keywords,
                 "attest's keywords and those of the object of --python: causal=is_causal,scale=sm_scale");
  app.add_option("--refuses", options.stated.refuses,
                 "Features that the object of --python can't do, comma separated: grouped heads,dtype=f64");
  app.add_option("--arithmetic", options.stated.arithmetic,
                 "How the object of --python rounds: stored_weights=bf16,exp_ulps=4");
  app.add_option("--conventions", options.stated.conventions,
                 "What the object of --python does where the field disagrees: empty_row=nan");
  app.add_option("--gradients", options.stated.gradients,
                 "How gradients come from the object of --python: autodiff, by PyTorch or JAX");
  app.add_flag("--no-isolate", options.no_isolate,
               "Run backends of plug-ins and of Python in this process, for debuggers");
}

Case one_case(const std::vector<std::string>& words) {
  const std::vector<std::string> cases = joined_arguments(words);
  if (cases.size() != 1) throw UserError("one case is wanted: \"" + cases.at(1) + "\" is another");
  return case_from_argument(cases.front());
}

void add_require_option(CLI::App& app, BackendOptions& options) {
  app.add_option("--require", options.require, "Names, comma separated: stop when one of them can't be had here")
      ->type_name("BACKEND");
}

std::optional<IsolationOptions> IsolationFlags::options(const BackendOptions& backend) const {
  backend.repeat_in_printed_commands();
  std::vector<std::string>& words = run_words().of_every_command;
  if (isolate) words.emplace_back("--isolate");
  if (backend.timeout_seconds != BackendOptions().timeout_seconds)
    words.insert(words.end(), {"--timeout", fmt::format("{}", backend.timeout_seconds)});
  if (backend.memory_gib != BackendOptions().memory_gib)
    words.insert(words.end(), {"--memory", fmt::format("{}", backend.memory_gib)});
  if (backend.sandbox) words.emplace_back("--sandbox");
  if (backend.trust) words.emplace_back("--trust");
  if (!wanted(backend)) return std::nullopt;
  return backend.limits();
}

std::optional<IsolationOptions> IsolationFlags::to_time(const BackendOptions& backend) const {
  std::optional<IsolationOptions> asked = options(backend);
  if (!asked) return std::nullopt;
  asked->which = isolate ? IsolatedBackends::all : IsolatedBackends::foreign;
  asked->seals_inputs = true;
  return asked;
}

std::string limits_text(const IsolationOptions& limits) {
  const double seconds = static_cast<double>(limits.limit.count()) / 1000;
  const std::string memory = limits.memory_gib > 0
                                 ? gib_text(limits.memory_gib * 0x1p30) + " of memory each"
                                 : gib_text(default_worker_memory()) + " of memory for all, a share of what is free";
  return fmt::format("processes of their own: {:g} s for a step, {}", seconds, memory);
}

std::string sandbox_line(const BackendSet& backends) {
  for (const Backend* backend : backends.all()) {
    if (const std::string layers = sandbox_of(*backend); !layers.empty()) return "sandbox: " + layers + "\n";
  }
  return "";
}

void add_isolation_options(CLI::App& app, BackendOptions& backend, IsolationFlags& flags) {
  auto* isolate = app.add_flag("--isolate", flags.isolate,
                               "Run each backend in a process of its own, its tensors between inaccessible pages");
  const std::string with = " (with --isolate, --plugin or --python)";
  auto* timeout = app.add_option("--timeout", backend.timeout_seconds,
                                 "Seconds that one step may take" + with + "; large cases get more")
                      ->check(number_range(0.001, 86400.0));
  auto* memory =
      app.add_option("--memory", backend.memory_gib,
                     "GiB that a backend may take beyond what it starts with; default: 0.8 of what is free, for all")
          ->check(number_range(0.001, 1e6));
  auto* sandbox =
      app.add_flag("--sandbox", backend.sandbox,
                   "Keep those processes from files, other processes and the network: for code of strangers");
  app.add_flag("--trust", backend.trust, "Run them even where the system lacks parts of the sandbox")->needs(sandbox);
  const auto* plugin = app.get_option_no_throw("--plugin");
  const auto* python = app.get_option_no_throw("--python");
  const auto* here = app.get_option_no_throw("--no-isolate");
  if (here) isolate->excludes("--no-isolate");
  app.parse_complete_callback([=] {
    const bool foreign = (plugin && !plugin->empty()) || (python && !python->empty());
    if (!isolate->empty() || (foreign && (!here || here->empty()))) return;
    for (const CLI::Option* limit : {timeout, memory, sandbox}) {
      if (!limit->empty()) throw CLI::RequiresError(limit->get_name(), "--isolate");
    }
    recommend_isolation_in_crashes();
  });
}

void add_steps_option(CLI::App& app, std::string& steps) {
  app.add_option("--steps", steps, "Steps that three plans take besides, as a failure prints them: \"1:prepare ...\"");
}

namespace {

template <NamedEnum E>
CLI::Validator one_of() {
  std::vector<std::string> names;
  for (const E value : values_of<E>()) names.emplace_back(name_of(value));
  return CLI::IsMember(names);
}

}  // namespace

bool OutputOptions::colored(std::FILE* stream) const {
  return is_colored(stream, value_named<ColorChoice>(color).value_or(ColorChoice::automatic));
}

TableFormat OutputOptions::table() const { return value_named<TableFormat>(format).value_or(TableFormat::text); }

ConsoleSettings OutputOptions::console(std::FILE* out) const {
  ConsoleSettings settings;
  settings.out = out;
  settings.format = table();
  settings.detail = quiet ? Detail::quiet : verbose ? Detail::verbose : Detail::normal;
  settings.colored = colored(out);
  return settings;
}

void add_color_option(CLI::App& app, OutputOptions& options) {
  app.add_option("--color", options.color, "Colours; auto: on a terminal, unless $NO_COLOR is set")
      ->check(one_of<ColorChoice>());
}

void add_detail_options(CLI::App& app, OutputOptions& options) {
  auto* verbose = app.add_flag("-v,--verbose", options.verbose, "Say more: every verdict, all cases of each reason");
  app.add_flag("-q,--quiet", options.quiet, "Say less: failures, and whether all is right")->excludes(verbose);
}

void add_format_option(CLI::App& app, OutputOptions& options, const std::string& what) {
  app.add_option("--format", options.format, what + "; default: text")->check(one_of<TableFormat>());
}

}  // namespace attest
