#include "harness/cli/cli.h"

#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <system_error>

#include "harness/base/crash_message.h"
#include "harness/base/interrupted.h"
#include "harness/base/launcher.h"
#include "harness/base/output_file.h"
#include "harness/base/run_words.h"
#include "harness/base/text.h"
#include "harness/base/user_error.h"
#include "harness/cli/command.h"
#include "reference/base/nearest.h"

namespace attest {
namespace {

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

constexpr const char* kAbout =
    "attest tells whether an implementation of scaled dot-product attention is right, and how fast it is.";

/// What `attest` alone prints.
constexpr const char* kFirstSteps = R"(
The commands that most people need:
  attest check --suite smoke                       are the backends right?
  attest check --plugin ./libmine.so --suite smoke is my kernel right?
  attest explain "seq=64 dim=64" --backend eigen   how wrong is the worst element, and why?
  attest bench "heads=8 seq=1024 dim=64"           how fast is what is right?

Your own kernel: `attest new-backend mine` writes a plug-in that works. All commands: `attest --help`.
)";

/// In the order of --help.
constexpr void (*kCommands[])(CLI::App&, Invocation&) = {
    add_check,  add_relate,  add_merge, add_export,      add_verify,  add_bench,  add_tune,
    add_list,   add_trace,   add_judge, add_confined,    add_explain, add_shrink, add_compare,
    add_report, add_support, add_fuzz,  add_new_backend, add_mutants, add_manual, add_worker};

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
  if (std::string(argv[1]) == "import")
    throw UserError("import: is a command of attest for Python; install that, and run `python -m attest import`");
  throw UserError("unknown subcommand \"" + std::string(argv[1]) + "\"; nearest: " + nearest_name(argv[1], names) +
                  "; see `attest --help`");
}

constexpr const char* kFaultOfAttest = " (this is a fault of attest; please report it with the command)";

/// Of a standard stream that was closed the next file would take the place, and the table would go into it. Writing to
/// what stands there instead fails.
void fill_closed_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) < 0) [[maybe_unused]]
      const int filled = open("/dev/null", O_RDONLY);
  }
}

/// Of the ranks of a job the first speaks for all, and its exit code is the job's.
bool is_silent() {
  const std::optional<LaunchedRank> launched = launched_rank();
  return launched && launched->rank > 0;
}

/// One line on stderr.
int complain(const std::string& message, int exit_code) {
  if (is_silent()) return kOk;
  std::fprintf(stderr, "attest: %s\n", printable_line(message).c_str());
  return exit_code;
}

int complain_about_output(int exit_code) {
  const std::string why = errno ? std::string(": ") + std::strerror(errno) : "";
  return complain("standard output could not be written" + why,
                  exit_code == kOk || exit_code == kNothingChecked ? kFailed : exit_code);
}

/// The exit code of a command that ran: a table that nobody could read is no success, nor is one without its end.
int final_exit_code(int exit_code) {
  std::cout.flush();
  errno = 0;
  if (std::fflush(stdout) != 0 || std::ferror(stdout)) exit_code = complain_about_output(exit_code);
  return interrupted ? complain("interrupted: results are those until then", kInterrupted) : exit_code;
}

int parse_and_run(int argc, const char* const* argv, std::span<const BackendEntry> registry,
                  const JoinRanks& join_ranks) {
  try {
    CLI::App app{kAbout, "attest"};
    app.footer(kFirstSteps);
    app.require_subcommand(1);
    app.set_version_flag("--version", ATTEST_VERSION);
    app.formatter(std::make_shared<CLI::Formatter>());
    Invocation invocation{registry, portable_command(argc, argv), kOk, &join_ranks};
    for (const auto& add : kCommands) add(app, invocation);
    if (argc < 2) {
      std::fprintf(stderr, "%s\n%s", kAbout, kFirstSteps);
      return kBadRequest;
    }
    try {
      reject_unknown_subcommand(argc, argv, app);
      app.parse(argc, argv);
      return final_exit_code(invocation.exit_code);
    } catch (const CLI::Success& done) {
      return final_exit_code(app.exit(done));  // --help and --version
    } catch (const CLI::ParseError& error) {
      throw UserError(explain_parse_error(app, error));
    }
  } catch (const UserError& error) {
    return complain(error.what(), kBadRequest);
  } catch (const OutputError& error) {
    return complain(error.what(), kFailed);
  } catch (const std::system_error& error) {
    errno = error.code().value();
    if (std::ferror(stdout)) return complain_about_output(kFailed);
    return complain(std::string(error.what()) + kFaultOfAttest, kBadRequest);
  } catch (const std::exception& error) {
    return complain(std::string(error.what()) + kFaultOfAttest, kBadRequest);
  }
}

}  // namespace

int run_command_line(int argc, const char* const* argv, std::span<const BackendEntry> registry,
                     const JoinRanks& join_ranks) {
  fill_closed_streams();
  catch_interrupts();
  name_work_in_crashes();
  if (const std::string name = std::filesystem::path(argc > 0 ? argv[0] : "").filename().string(); !name.empty())
    run_words().program = shell_quoted(name);
  return parse_and_run(argc, argv, registry, join_ranks);
}

}  // namespace attest
