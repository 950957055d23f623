#include "harness/cli/program_description.h"

#include <CLI/CLI.hpp>
#include <algorithm>

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

/// Descriptions begin with "Example:", a line, and an empty one.
CommandDescription describe_command(const CLI::App& app) {
  CommandDescription result{app.get_name(), "", app.get_description(), app.get_footer(), describe_options(app)};
  const std::string start = "Example:\n  ";
  if (result.about.starts_with(start)) {
    const std::size_t end = result.about.find("\n\n");
    result.example = result.about.substr(start.size(), end - start.size());
    result.about = end == std::string::npos ? "" : result.about.substr(end + 2);
  }
  std::replace(result.about.begin(), result.about.end(), '\n', ' ');
  return result;
}

}  // namespace

ProgramDescription describe_program(const CLI::App& app) {
  ProgramDescription result{app.get_name(), ATTEST_VERSION, app.get_description(), describe_options(app), {}};
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!command->get_group().empty()) result.commands.push_back(describe_command(*command));
  }
  return result;
}

}  // namespace attest
