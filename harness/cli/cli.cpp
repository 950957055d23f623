#include "harness/cli/cli.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "harness/base/interrupted.h"
#include "harness/base/user_error.h"
#include "harness/cli/command.h"
#include "reference/nearest.h"

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

constexpr const char* kExamples = R"(Examples:
  attest check "heads=8/2 seq=33x65 dim=64 causal align=bottom-right"
  attest check --suite smoke
  attest bench "heads=8 seq=1024 dim=64" --threads 2

attest tells whether an implementation of scaled dot-product attention is right, and how fast it is.
)";

/// In the order of --help.
constexpr void (*kCommands[])(CLI::App&, Invocation&) = {add_check,  add_bench,   add_list, add_trace,   add_explain,
                                                         add_shrink, add_compare, add_fuzz, add_mutants, add_worker};

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
  catch_interrupts();
  try {
    CLI::App app{kExamples, "attest"};
    app.require_subcommand(1);
    app.set_version_flag("--version", ATTEST_VERSION);
    app.formatter(std::make_shared<CLI::Formatter>());
    Invocation invocation{registry, portable_command(argc, argv)};
    for (const auto& add : kCommands) add(app, invocation);
    try {
      reject_unknown_subcommand(argc, argv, app);
      app.parse(argc, argv);
      return invocation.exit_code;
    } catch (const CLI::Success& done) {
      return app.exit(done);  // --help and --version
    } catch (const CLI::ParseError& error) {
      throw UserError(explain_parse_error(app, error));
    }
  } catch (const UserError& error) {
    std::fprintf(stderr, "attest: %s\n", error.what());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "attest: %s (this is a fault of attest; please report it with the command)\n", error.what());
  }
  return kBadRequest;
}

}  // namespace attest
