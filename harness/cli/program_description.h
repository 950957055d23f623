// The command line as data, read from the parser's own description: what the manual is made of.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace attest {

struct OptionDescription {
  std::vector<std::string> names;  ///< "-v", "--verbose"; of an argument by its place its name alone
  std::string value;  ///< what follows it: "FILE", "FOLDER", "SUITE", "BACKEND", "CASE", ...; empty: nothing
  std::vector<std::string> choices;  ///< the only values, where they are few
  std::string about;
  bool positional = false, required = false;
};

struct CommandDescription {
  std::string name, example, about, footer;
  std::vector<OptionDescription> options;
};

struct ProgramDescription {
  std::string name, version, about;
  std::vector<OptionDescription> options;    ///< of the program itself
  std::vector<CommandDescription> commands;  ///< in the order of --help, hidden ones left out
};

/// `app`: the whole program, with all of its commands.
ProgramDescription describe_program(const CLI::App& app);

}  // namespace attest
