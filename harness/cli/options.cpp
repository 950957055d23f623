// Options that several commands take.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <thread>

#include "harness/base/crash_message.h"
#include "harness/base/user_error.h"
#include "harness/cli/command.h"
#include "harness/cli/number_range.h"
#include "harness/isolation/backend_set.h"

namespace attest {

Context BackendOptions::context() const {
  const int all = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  return {threads > 0 ? threads : all, device};
}

std::vector<std::string> BackendOptions::list() const { return split_names(names); }

std::vector<std::string> BackendOptions::required() const { return split_names(require); }

std::vector<std::string> BackendOptions::one(const std::string& command) const {
  std::vector<std::string> named = list();
  if (named.size() != 1) throw UserError(command + " one backend: --backend NAME");
  return named;
}

void add_backend_options(CLI::App& app, BackendOptions& options) {
  app.add_option("--backend", options.names, "Names, comma separated; default: all that can be had");
  app.add_option("--threads", options.threads, "Threads of each backend; default: every core")
      ->check(CLI::Range(1, 1024));
  app.add_option("--device", options.device, "Part of an OpenCL device's or platform's name");
}

void add_require_option(CLI::App& app, BackendOptions& options) {
  app.add_option("--require", options.require, "Names, comma separated: stop when one of them can't be had here");
}

std::optional<IsolationOptions> IsolationFlags::options() const {
  if (!isolate) return std::nullopt;
  return IsolationOptions{std::chrono::milliseconds(static_cast<std::int64_t>(timeout_seconds * 1000)), memory_gib};
}

void add_isolation_options(CLI::App& app, IsolationFlags& flags) {
  auto* isolate = app.add_flag("--isolate", flags.isolate,
                               "Run each backend in a process of its own, its tensors between inaccessible pages");
  app.add_option("--timeout", flags.timeout_seconds, "Seconds that one step may take (with --isolate)")
      ->check(number_range(0.001, 86400.0))
      ->needs(isolate);
  app.add_option("--memory", flags.memory_gib, "GiB that a backend may take beyond what it starts with")
      ->check(number_range(0.001, 1e6))
      ->needs(isolate);
  app.parse_complete_callback([isolate] {
    if (isolate->empty()) recommend_isolation_in_crashes();
  });
}

}  // namespace attest
