// attest mutants: the program beside this one that has every wrong backend.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <filesystem>

#include "harness/base/machine.h"
#include "harness/base/user_error.h"
#include "harness/cli/command.h"

namespace attest {
namespace {

/// Becomes the program `name` that lies beside this one.
int run_beside(const std::string& name, const std::vector<std::string>& arguments) {
  const auto path = program_path().parent_path() / name;
  std::vector<std::string> words = {path.string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  std::signal(SIGPIPE, SIG_DFL);  // what is ignored stays so in a program that takes this one's place
  execv(path.c_str(), pointers.data());
  throw UserError(name + " is not beside attest: it is built with the tests (-DATTEST_TESTS=ON), not installed");
}

}  // namespace

void add_mutants(CLI::App& app, Invocation& invocation) {
  auto* sub = app.add_subcommand(
      "mutants", "Is every wrong backend caught? Mistakes and mutants against the suites (built with the tests).");
  sub->footer("");  // what its own --help ends with
  sub->prefix_command();
  sub->callback([sub, &invocation] { invocation.exit_code = run_beside("attest-mutants", sub->remaining()); });
}

}  // namespace attest
