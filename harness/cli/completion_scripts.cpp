#include "harness/cli/completion_scripts.h"

#include <fmt/format.h>

#include <string_view>

#include "harness/base/text.h"

namespace attest {
namespace {

/// In single quotes of the shell.
std::string in_quotes(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

constexpr const char* kBashHead = R"sh(# Completion of attest for bash, made by `attest completion bash`.

# The words of a kind that begin like what is typed; compgen -W would run what stands in them.
_attest_words() { # PROGRAM KIND TYPED
  local word
  "$1" completion --words "$2" 2>/dev/null | while IFS= read -r word; do
    [[ $word != "$3"* ]] || printf '%s\n' "$word"
  done
}

# Of names with commas between them the last.
_attest_names() { # PROGRAM KIND TYPED
  local before= word
  [[ $3 != *,* ]] || before=${3%,*},
  _attest_words "$1" "$2" "${3##*,}" | while IFS= read -r word; do printf '%s\n' "$before$word"; done
}

# The last word of a case line, in quotes or not; or a file.
_attest_case() { # PROGRAM TYPED
  local typed=$2 before= word
  typed=${typed#[\"\']}
  [[ $typed != *' '* ]] || before="${typed% *} "
  _attest_words "$1" keys "${typed##* }" | while IFS= read -r word; do printf '%s\n' "$before$word"; done
  [[ -n $before ]] || compgen -f -X '!*.safetensors' -- "$typed" | grep -vE '[^A-Za-z0-9_./=+,:@-]'
}

_attest() {
  local program=$1 typed=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]} command= value= choices= options= word
  # --suite=smoke comes as three words.
  if [[ $typed = "=" ]]; then
    typed=
  elif [[ $option = "=" ]] && ((COMP_CWORD >= 2)); then
    option=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    [[ $word = -* ]] || { command=$word; break; }
  done
)sh";

constexpr const char* kBashTail = R"sh(
  [[ $typed != -* ]] || { value=option choices=$options; }
  case $value in
    FILE) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$typed") ;;
    FOLDER) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "$typed") ;;
    SUITE) mapfile -t COMPREPLY < <(_attest_words "$program" suites "$typed") ;;
    BACKEND) compopt -o nospace 2>/dev/null; mapfile -t COMPREPLY < <(_attest_names "$program" backends "$typed") ;;
    CASE) compopt -o nospace 2>/dev/null; mapfile -t COMPREPLY < <(_attest_case "$program" "$typed") ;;
    WORD | option) mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$typed") ;;
    *) COMPREPLY=() ;;
  esac
}
complete -F _attest attest
)sh";

/// The argument by its place that a command has: what is completed where no option asks for a value.
const OptionDescription* positional_of(const CommandDescription& command) {
  for (const OptionDescription& option : command.options) {
    if (option.positional) return &option;
  }
  return nullptr;
}

/// What says nothing of itself may be a file.
std::string kind_of(const OptionDescription& option) {
  return option.value == "TEXT" && option.positional ? "FILE" : option.value;
}

}  // namespace

std::string bash_completion(const ProgramDescription& program) {
  std::string commands, script = kBashHead;
  for (const CommandDescription& command : program.commands) commands += (commands.empty() ? "" : " ") + command.name;
  script += "  case $command in\n";
  for (const CommandDescription& command : program.commands) {
    std::vector<std::string> names;
    for (const OptionDescription& option : command.options) {
      if (!option.positional) names.insert(names.end(), option.names.begin(), option.names.end());
    }
    script += fmt::format("    {})\n      options={}\n", command.name, in_quotes(join_texts(names, " ")));
    if (const OptionDescription* place = positional_of(command)) {
      script += fmt::format("      value={} choices={}\n", kind_of(*place), in_quotes(join_texts(place->choices, " ")));
    }
    script += "      case $option in\n";
    for (const OptionDescription& option : command.options) {
      if (option.positional || option.value.empty()) continue;
      script += fmt::format("        {}) value={} choices={} ;;\n", join_texts(option.names, " | "), option.value,
                            in_quotes(join_texts(option.choices, " ")));
    }
    script += "      esac ;;\n";
  }
  std::vector<std::string> own;
  for (const OptionDescription& option : program.options)
    own.insert(own.end(), option.names.begin(), option.names.end());
  script += fmt::format("    \"\") value=WORD choices={} options={} ;;\n  esac", in_quotes(commands),
                        in_quotes(join_texts(own, " ")));
  return script + kBashTail;
}

}  // namespace attest
