// Options that several commands take.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <thread>

#include "harness/base/backend_source.h"
#include "harness/base/crash_message.h"
#include "harness/base/terminal.h"
#include "harness/base/user_error.h"
#include "harness/cli/command.h"
#include "harness/cli/number_range.h"
#include "harness/isolation/backend_set.h"

namespace attest {

Context BackendOptions::context() const {
  const int all = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  return {threads > 0 ? threads : all, device, group};
}

std::vector<std::string> BackendOptions::sources() const {
  std::vector<std::string> all = plugins;
  for (const std::string& object : objects) all.push_back(std::string(kPythonObject) + object);
  return all;
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
  return IsolationOptions{};
}

void add_backend_options(CLI::App& app, BackendOptions& options) {
  app.add_option("--backend", options.names,
                 "Names, comma separated; default: all that can be had, with --plugin all of the plug-in")
      ->type_name("BACKEND");
  app.add_option("--threads", options.threads, "Threads of each backend; default: every core")
      ->check(CLI::Range(1, 1024));
  app.add_option("--device", options.device, "Part of an OpenCL device's or platform's name");
}

void add_plugin_options(CLI::App& app, BackendOptions& options, bool isolates) {
  app.add_option("--plugin", options.plugins, "A shared library with backends; may be repeated")
      ->type_name("FILE")
      ->allow_extra_args(false);  // what follows is a case
  app.add_option("--python", options.objects,
                 "A callable or Backend as module:object or file.py:object, with `python -m attest`; may be repeated")
      ->allow_extra_args(false);
  if (!isolates) return;
  app.add_flag("--no-isolate", options.no_isolate,
               "Run backends of plug-ins and of Python in this process, for debuggers");
}

void add_require_option(CLI::App& app, BackendOptions& options) {
  app.add_option("--require", options.require, "Names, comma separated: stop when one of them can't be had here")
      ->type_name("BACKEND");
}

std::optional<IsolationOptions> IsolationFlags::options(const BackendOptions& backend) const {
  if (!wanted(backend)) return std::nullopt;
  return IsolationOptions{std::chrono::milliseconds(static_cast<std::int64_t>(timeout_seconds * 1000)), memory_gib};
}

void add_isolation_options(CLI::App& app, IsolationFlags& flags) {
  auto* isolate = app.add_flag("--isolate", flags.isolate,
                               "Run each backend in a process of its own, its tensors between inaccessible pages");
  auto* timeout = app.add_option("--timeout", flags.timeout_seconds,
                                 "Seconds that one step may take (with --isolate); large cases get more")
                      ->check(number_range(0.001, 86400.0));
  auto* memory = app.add_option("--memory", flags.memory_gib, "GiB that a backend may take beyond what it starts with")
                     ->check(number_range(0.001, 1e6));
  const auto* plugin = app.get_option_no_throw("--plugin");
  const auto* python = app.get_option_no_throw("--python");
  const auto* here = app.get_option_no_throw("--no-isolate");
  if (here) isolate->excludes("--no-isolate");
  app.parse_complete_callback([=] {
    const bool foreign = (plugin && !plugin->empty()) || (python && !python->empty());
    if (!isolate->empty() || (foreign && here->empty())) return;
    for (const CLI::Option* limit : {timeout, memory}) {
      if (!limit->empty()) throw CLI::RequiresError(limit->get_name(), "--isolate");
    }
    recommend_isolation_in_crashes();
  });
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
