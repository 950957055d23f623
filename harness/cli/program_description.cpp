#include "harness/cli/program_description.h"

#include <CLI/CLI.hpp>
#include <string_view>

#include "harness/cli/command.h"

namespace attest {
namespace {

/// "{auto,always,never}" within the name of a type, one by one.
std::vector<std::string> choices_in(const std::string& type) {
  std::vector<std::string> choices;
  const std::size_t open = type.find('{'), close = type.find('}');
  if (open == std::string::npos || close == std::string::npos || close < open) return choices;
  std::string choice;
  for (std::size_t at = open + 1; at <= close; ++at) {
    if (type[at] != ',' && at != close) {
      choice += type[at];
    } else {
      choices.push_back(choice);
      choice.clear();
    }
  }
  return choices;
}

OptionDescription describe(const CLI::Option& option) {
  OptionDescription result;
  result.positional = option.get_positional();
  result.required = option.get_required();
  if (result.positional) {
    result.names = {option.get_name(true)};
  } else {
    for (const std::string& name : option.get_snames()) result.names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) result.names.push_back("--" + name);
  }
  if (option.get_items_expected_max() > 0) {
    const std::string type = option.get_type_name();
    result.choices = choices_in(type);
    result.value = result.choices.empty() ? type.substr(0, type.find_first_of(": ")) : "WORD";
  }
  result.about = option.get_description();
  return result;
}

std::vector<OptionDescription> describe_options(const CLI::App& app) {
  std::vector<OptionDescription> list;
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_group().empty()) list.push_back(describe(*option));
  }
  return list;
}

/// The footer of a command ends with its example.
constexpr std::string_view kExample = "Example:\n  ";

CommandDescription describe_command(const CLI::App& app) {
  CommandDescription result{app.get_name(), "", app.get_description(), app.get_footer(), describe_options(app)};
  if (const std::size_t at = result.footer.find(kExample); at != std::string::npos) {
    result.example = result.footer.substr(at + kExample.size());
    result.footer.resize(at);
    while (result.footer.ends_with('\n')) result.footer.pop_back();
  }
  return result;
}

}  // namespace

CLI::App* add_command(CLI::App& app, const std::string& name, const std::string& about, const std::string& example) {
  CLI::App* command = app.add_subcommand(name, about);
  command->footer(std::string(kExample) + example);
  return command;
}

void add_to_footer(CLI::App& command, const std::string& text) { command.footer(text + "\n\n" + command.get_footer()); }

ProgramDescription describe_program(const CLI::App& app) {
  ProgramDescription result{app.get_name(), ATTEST_VERSION, app.get_description(), describe_options(app), {}};
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!command->get_group().empty()) result.commands.push_back(describe_command(*command));
  }
  return result;
}

}  // namespace attest
