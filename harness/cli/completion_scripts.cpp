#include "harness/cli/completion_scripts.h"

#include <fmt/format.h>

#include <string_view>

#include "harness/base/text.h"

namespace attest {
namespace {

/// Each of `special` behind a backslash.
std::string escaped(const std::string& text, std::string_view special) {
  std::string result;
  for (const char c : text) {
    if (special.find(c) != std::string_view::npos) result += '\\';
    result += c == '\n' ? ' ' : c;
  }
  return result;
}

/// In single quotes of bash and zsh.
std::string in_quotes(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

/// The first sentence: a menu has one line for each.
std::string short_about(const std::string& about) {
  const std::size_t end = about.find_first_of(".;:(");
  std::string text = about.substr(0, end);
  while (text.ends_with(' ') || text.ends_with(',')) text.pop_back();
  return text;
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

namespace {

constexpr const char* kZshHead = R"sh(#compdef attest
# Completion of attest for zsh, made by `attest completion zsh`.

_attest_suites() {
  local -a names
  names=(${(f)"$(_call_program suites attest completion --words suites 2>/dev/null)"})
  _describe -t suites suite names
}

_attest_backends() {
  local -a names
  names=(${(f)"$(_call_program backends attest completion --words backends 2>/dev/null)"})
  _values -s , backend $names
}

# The last word of a case line, in quotes or not; or a file.
_attest_cases() {
  local -a keys
  keys=(${(f)"$(_call_program keys attest completion --words keys 2>/dev/null)"})
  compset -P '* '
  compset -q && compset -P '* '
  compadd -S '' -a keys
  _files -g '*.safetensors'
}

)sh";

std::string zsh_action(const OptionDescription& option) {
  if (!option.choices.empty()) return "(" + join_texts(option.choices, " ") + ")";
  const std::string kind = kind_of(option);
  if (kind == "FILE") return "_files";
  if (kind == "FOLDER") return "_files -/";
  if (kind == "SUITE") return "_attest_suites";
  if (kind == "BACKEND") return "_attest_backends";
  return kind == "CASE" ? "_attest_cases" : " ";
}

std::string zsh_spec(const OptionDescription& option) {
  if (option.positional) return in_quotes("*:" + escaped(option.names[0], ":\\") + ":" + zsh_action(option));
  const std::string about = "[" + escaped(option.about, "[]\\") + "]";
  const std::string value = option.value.empty() ? "" : ":" + option.value + ":" + zsh_action(option);
  std::string specs;
  for (const std::string& name : option.names) {
    const std::string sign = value.empty() || !name.starts_with("--") ? "" : "=";
    specs += (specs.empty() ? "" : " ") + in_quotes("*" + name + sign + about + value);
  }
  return specs;
}

}  // namespace

std::string zsh_completion(const ProgramDescription& program) {
  std::string script = kZshHead;
  script += "_attest() {\n  local curcontext=\"$curcontext\" state line\n  local -a commands\n  commands=(\n";
  for (const CommandDescription& command : program.commands) {
    script += "    " + in_quotes(command.name + ":" + escaped(short_about(command.about), ":\\")) + '\n';
  }
  script += "  )\n  _arguments -C";
  for (const OptionDescription& option : program.options) script += " " + zsh_spec(option);
  script += " '1:command:->command' '*::argument:->arguments'\n  case $state in\n";
  script += "    command) _describe -t commands command commands ;;\n    arguments)\n      case $words[1] in\n";
  for (const CommandDescription& command : program.commands) {
    script += fmt::format("        {})\n          _arguments", command.name);
    bool placed = false;  // one "*" takes every further argument
    for (const OptionDescription& option : command.options) {
      if (option.positional && placed) continue;
      placed = placed || option.positional;
      script += " \\\n            " + zsh_spec(option);
    }
    script += " ;;\n";
  }
  return script + "      esac ;;\n  esac\n}\n\n_attest \"$@\"\n";
}

namespace {

constexpr const char* kFishHead = R"sh(# Completion of attest for fish, made by `attest completion fish`.

# Of names with commas between them the last.
function __attest_names
    set -l before (string match -r '^.*,' -- (commandline -ct))
    for name in (attest completion --words backends 2>/dev/null)
        echo "$before$name"
    end
end

# The last word of a case line, in quotes or not.
function __attest_case
    set -l typed (commandline -ct | string trim -l -c '"\'')
    set -l before (string match -r '^.* ' -- $typed)
    for key in (attest completion --words keys 2>/dev/null)
        echo "$before$key"
    end
end

complete -c attest -f
)sh";

std::string fish_quoted(const std::string& text) { return "'" + escaped(text, "'\\") + "'"; }

/// What follows an option, or stands for itself.
std::string fish_values(const OptionDescription& option) {
  if (!option.choices.empty()) return " -x -a " + fish_quoted(join_texts(option.choices, " "));
  const std::string kind = kind_of(option);
  if (kind == "FILE") return " -r -F";
  if (kind == "FOLDER") return " -x -a '(__fish_complete_directories)'";
  if (kind == "SUITE") return " -x -a '(attest completion --words suites 2>/dev/null)'";
  if (kind == "BACKEND") return " -x -a '(__attest_names)'";
  if (kind == "CASE") return " -x -a '(__attest_case; __fish_complete_suffix .safetensors)'";
  return " -x";
}

std::string fish_names(const OptionDescription& option) {
  std::string names;
  for (const std::string& name : option.names) {
    names += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  }
  return names;
}

}  // namespace

std::string fish_completion(const ProgramDescription& program) {
  std::string script = kFishHead;
  for (const OptionDescription& option : program.options) {
    script +=
        "complete -c attest -n __fish_use_subcommand" + fish_names(option) + " -d " + fish_quoted(option.about) + '\n';
  }
  for (const CommandDescription& command : program.commands) {
    script += fmt::format("complete -c attest -n __fish_use_subcommand -a {} -d {}\n", command.name,
                          fish_quoted(short_about(command.about)));
    for (const OptionDescription& option : command.options) {
      script += fmt::format("complete -c attest -n '__fish_seen_subcommand_from {}'", command.name);
      if (option.positional) {
        script += kind_of(option) == "FILE" ? " -F\n" : fish_values(option).substr(3) + '\n';
        continue;
      }
      script += fish_names(option) + (option.value.empty() ? "" : fish_values(option)) + " -d " +
                fish_quoted(option.about) + '\n';
    }
  }
  return script;
}

}  // namespace attest
