// The command line: one function per subcommand, each returns the exit code of grammar.md.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "harness/base/interrupted.h"
#include "harness/isolation/isolated_backend.h"

namespace CLI {
class App;
}

namespace attest {

enum ExitCode : int { kOk = 0, kFailed = 1, kBadRequest = 2, kNothingChecked = 3, kInterrupted = 130 };

/// Parses and runs; prints a user's error as one line on stderr. Never throws.
int run_command_line(int argc, const char* const* argv, std::span<const BackendEntry> registry);

/// What every subcommand that runs backends takes.
struct CommonOptions {
  std::string backends;  ///< comma separated; empty means all
  std::string device;
  int threads = 0;  ///< 0: every core
  Context context() const;
};

struct CheckOptions {
  CommonOptions common;
  std::vector<std::string> cases, suites, suite_files;
  std::string filter, shard, json, junit, shrunk;
  bool fail_fast = false, no_shrink = false, isolate = false, resume = false, bitwise = false;
  double timeout_seconds = 60, memory_gib = 0;  ///< of one step and of one worker, with isolate
  std::optional<IsolationOptions> isolation() const;
  std::vector<std::string> command;  ///< as typed, for the report's header
};

struct FuzzOptions {
  CommonOptions common;
  double seconds = 60;
  std::uint64_t count = 0, seed = 0;
  std::string out;
  bool isolate = false;
  double timeout_seconds = 60, memory_gib = 0;
  std::optional<IsolationOptions> isolation() const;
};

struct BenchOptions {
  CommonOptions common;
  std::vector<std::string> cases, suites;
  std::string filter, json;
  int repetitions = 9;
  double min_seconds = 0.1;
  std::vector<std::string> command;
};

struct TraceOptions {
  std::string what, json, svg, row;
  bool causal = false;
  int digits = 4, blocks = 1;
  std::optional<std::int64_t> batch, head;
  std::int64_t model = 0;
  CommonOptions common;  ///< of language_model: the backend that runs the attention core
  std::string norm = "pre", positions = "sinusoidal", activation = "gelu", text;
};

struct ExplainOptions {
  CommonOptions common;
  std::string what;
  int elements = 3;
};

struct ShrinkOptions {
  CommonOptions common;
  std::string what, out = "smallest.safetensors";  ///< out: where a file's smallest case goes
  double budget_seconds = 10;
};

struct CompareOptions {
  std::string before, now;  ///< files, or folders with files of the same names
  double margin = 0.05, confidence = 0.99;
};

struct ListOptions {
  std::string what;
  bool json = false;
  std::vector<std::string> suites;
  CommonOptions common;
};

int run_check(const CheckOptions& options, std::span<const BackendEntry> registry);
int run_bench(const BenchOptions& options, std::span<const BackendEntry> registry);
int run_trace(const TraceOptions& options, std::span<const BackendEntry> registry);
int run_explain(const ExplainOptions& options, std::span<const BackendEntry> registry);
int run_fuzz(const FuzzOptions& options, std::span<const BackendEntry> registry);
int run_compare(const CompareOptions& options);
int run_shrink(const ShrinkOptions& options, std::span<const BackendEntry> registry);
int run_list(const ListOptions& options, std::span<const BackendEntry> registry);

}  // namespace attest
