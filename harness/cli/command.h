// What the commands share: how each adds itself to the command line, and options that several take.
#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "harness/backends/isolation/isolation_options.h"
#include "harness/backends/set/plugins.h"
#include "harness/base/table.h"
#include "harness/cases/case.h"
#include "harness/cli/cli.h"
#include "harness/report/report.h"

namespace CLI {
class App;
}

namespace attest {

class BackendSet;

/// One call of the program.
struct Invocation {
  std::span<const BackendEntry> registry;
  std::vector<std::string> words;  ///< as typed, without the folders of one machine: for files of results
  int exit_code = kOk;             ///< set by the command that ran
  const JoinRanks* join_ranks = nullptr;
};

/// A subcommand with what it does, in a sentence or two, and behind its options an example.
CLI::App* add_command(CLI::App& app, const std::string& name, const std::string& about, const std::string& example);
/// More behind its options, before the example.
void add_to_footer(CLI::App& command, const std::string& text);

/// Each adds its subcommand with its options; the subcommand runs when parsing is complete.
void add_bench(CLI::App& app, Invocation& invocation);
void add_check(CLI::App& app, Invocation& invocation);
void add_compare(CLI::App& app, Invocation& invocation);
void add_explain(CLI::App& app, Invocation& invocation);
void add_export(CLI::App& app, Invocation& invocation);
void add_fuzz(CLI::App& app, Invocation& invocation);
void add_confined(CLI::App& app, Invocation& invocation);
void add_judge(CLI::App& app, Invocation& invocation);
void add_list(CLI::App& app, Invocation& invocation);
void add_new_backend(CLI::App& app, Invocation& invocation);
void add_manual(CLI::App& app, Invocation& invocation);
void add_merge(CLI::App& app, Invocation& invocation);
void add_mutants(CLI::App& app, Invocation& invocation);
void add_relate(CLI::App& app, Invocation& invocation);
void add_report(CLI::App& app, Invocation& invocation);
void add_shrink(CLI::App& app, Invocation& invocation);
void add_support(CLI::App& app, Invocation& invocation);
void add_trace(CLI::App& app, Invocation& invocation);
void add_tune(CLI::App& app, Invocation& invocation);
void add_verify(CLI::App& app, Invocation& invocation);
void add_worker(CLI::App& app, Invocation& invocation);

/// What every command that runs backends takes.
struct BackendOptions {
  std::string names;                 ///< comma separated; empty means all, or with plug-ins all of theirs
  std::vector<std::string> plugins;  ///< paths of shared libraries
  std::vector<std::string> objects;  ///< of Python: module:object, or a file with :object behind it
  struct Stated {                    ///< what is said of objects that don't say it themselves, as attest.check takes it
    std::string name, tensors, keywords, refuses, arithmetic, conventions, gradients;
  } stated;
  bool no_isolate = false;      ///< backends of both run in this process
  double timeout_seconds = 60;  ///< of one step of a backend in a process of its own
  double memory_gib = 0;        ///< of one such process; 0: a share of what is free
  bool sandbox = false;         ///< around such processes
  bool trust = false;           ///< they run where the sandbox is incomplete, too
  std::string require;          ///< comma separated: those that must be there
  std::string device;
  int threads = 0;               ///< 0: every core
  int ranks_per_case = 1;        ///< of an MPI job
  const Group* group = nullptr;  ///< these ranks, where there are several; set by run_on_ranks()

  Context context() const;
  /// Plug-ins and objects, as Plugins takes them.
  std::vector<std::string> sources() const;
  /// The names one by one. Throws UserError for an empty one.
  std::vector<std::string> list(const Plugins& loaded) const;
  /// The names that must be there. Throws UserError for an empty one.
  std::vector<std::string> required() const;
  /// The one backend that `command` looks at. Throws UserError unless exactly one is named, or there is one plug-in
  /// with one backend.
  std::vector<std::string> one(const std::string& command, const Plugins& loaded) const;
  /// Of processes of their own, where backends have them.
  IsolationOptions limits() const;
  /// Of commands without --isolate: with plug-ins, processes of their own unless --no-isolate says otherwise.
  std::optional<IsolationOptions> isolation() const;
  /// Has printed commands repeat --threads, --device and --no-isolate where they are given.
  void repeat_in_printed_commands() const;
};
/// How many backends a command takes.
enum class BackendCount : std::uint8_t { one, any };
void add_backend_options(CLI::App& app, BackendOptions& options, BackendCount count);
/// --plugin, --python with what is said of its objects, and --no-isolate.
void add_plugin_options(CLI::App& app, BackendOptions& options);
/// The case that a command looks at. Throws UserError where the words are more than one.
Case one_case(const std::vector<std::string>& words);

/// --require, for commands that run all backends that can be had.
void add_require_option(CLI::App& app, BackendOptions& options);

/// --ranks-per-case, of commands that the ranks of an MPI job do together.
void add_ranks_option(CLI::App& app, BackendOptions& options);

/// What a command does where the ranks have more threads than there are processors.
enum class Oversubscription : std::uint8_t { is_told, is_refused };

/// Runs a command that the ranks of an MPI job do together. `command` is told of the job, nullptr where this process is
/// by itself; `options` get this rank's share of the machine. With --ranks-per-case the job is split into groups first,
/// and `command` runs on the first rank of each; it has no backend any more when it returns. What it throws ends the
/// whole job, but for what all ranks throw. The exit code is rank 0's: the others end with 0, so that the launcher's is
/// the same.
int run_on_ranks(const Invocation& invocation, BackendOptions& options, Oversubscription policy,
                 const std::function<int(Ranks*)>& command);

/// --isolate.
struct IsolationFlags {
  bool isolate = false;

  /// Isolation is asked for, or is the way of plug-ins.
  bool wanted(const BackendOptions& backend) const { return isolate || backend.isolation().has_value(); }
  /// Has printed commands repeat these and those of `backend`, too.
  std::optional<IsolationOptions> options(const BackendOptions& backend) const;
  /// The same for commands that time backends: without --isolate backends of this program stay in this process.
  std::optional<IsolationOptions> to_time(const BackendOptions& backend) const;
};
/// With the limits, --timeout and --memory. Behind add_plugin_options(), where the command takes plug-ins.
void add_isolation_options(CLI::App& app, BackendOptions& backend, IsolationFlags& flags);
/// How far backends may go, in a line.
std::string limits_text(const IsolationOptions& limits);

/// The sandbox around the backends, as a line with its end; "" where there is none.
std::string sandbox_line(const BackendSet& backends);

/// --steps: what three plans do besides (harness/verdict/plan_life.h).
void add_steps_option(CLI::App& app, std::string& steps);

/// --color, and where there is more or less to say -v and -q.
struct OutputOptions {
  bool verbose = false, quiet = false;
  std::string color, format;

  bool colored(std::FILE* stream) const;
  TableFormat table() const;
  /// Of a report of verdicts on this stream.
  ConsoleSettings console(std::FILE* out) const;
  /// Tables are CSV or Markdown and have standard output for themselves.
  bool for_programs() const { return table() != TableFormat::text; }
};
void add_color_option(CLI::App& app, OutputOptions& options);
void add_detail_options(CLI::App& app, OutputOptions& options);
/// --format; `what` is printed in it.
void add_format_option(CLI::App& app, OutputOptions& options, const std::string& what);

}  // namespace attest
