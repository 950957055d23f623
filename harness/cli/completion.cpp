// attest completion: a script for bash, and the words that it asks for.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "harness/base/text.h"
#include "harness/cases/suites.h"
#include "harness/cli/command.h"
#include "harness/cli/completion_scripts.h"
#include "reference/options/options.h"

namespace attest {
namespace {

struct CompletionOptions {
  std::string shell, words;
};

/// Names alone, found without making a backend or reading a case: a shell waits for them. A suite's name that a shell
/// would take for more than a word is left out.
void print_words(const std::string& kind, std::span<const BackendEntry> registry) {
  if (kind == "suites") {
    for (const Suite& suite : find_suites()) {
      if (shell_quoted(suite.name) == suite.name) fmt::print("{}\n", suite.name);
    }
  } else if (kind == "backends") {
    for (const BackendEntry& entry : registry) fmt::print("{}\n", entry.name);
  } else {
    for (const Option& option : options()) {
      if (!option.takes_value() || option.stands_alone) fmt::print("{}\n", option.key);
      if (option.takes_value()) fmt::print("{}=\n", option.key);
    }
  }
}

int run(const CompletionOptions& options, const CLI::App& program, std::span<const BackendEntry> registry) {
  if (!options.words.empty()) {
    print_words(options.words, registry);
    return kOk;
  }
  if (options.shell.empty()) throw CLI::RequiredError("shell");
  fmt::print("{}", bash_completion(describe_program(program)));
  return kOk;
}

}  // namespace

void add_completion(CLI::App& app, Invocation& invocation) {
  const auto options = std::make_shared<CompletionOptions>();
  auto* sub = add_command(app, "completion", "Print a script that lets bash complete commands, options and case lines.",
                          "attest completion bash > ~/.local/share/bash-completion/completions/attest");
  sub->add_option("shell", options->shell, "Whose script")->check(CLI::IsMember({"bash"}));
  sub->add_option("--words", options->words, "What the script asks for")
      ->check(CLI::IsMember({"suites", "backends", "keys"}))
      ->group("");
  sub->callback([options, &app, &invocation] { invocation.exit_code = run(*options, app, invocation.registry); });
}

}  // namespace attest
