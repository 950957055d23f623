// attest manual: the manual page, from the same description of the options as --help.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "harness/cli/command.h"
#include "harness/cli/program_description.h"

namespace attest {
namespace {

/// Text in roff: backslashes and hyphens as they are typed, and no line that is taken for a request.
std::string roff(const std::string& text) {
  std::string result;
  bool start = true;
  for (const char c : text) {
    if (start && (c == '.' || c == '\'')) result += "\\&";
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else {
      result += c;
    }
    start = c == '\n';
  }
  return result;
}

/// Lines that stay as they are, indented.
std::string verbatim(const std::string& text) { return ".RS\n.nf\n" + roff(text) + "\n.fi\n.RE\n"; }

std::string term(const OptionDescription& option) {
  std::string names;
  for (const std::string& name : option.names) names += (names.empty() ? "\\fB" : ", \\fB") + roff(name) + "\\fR";
  if (option.positional) return "\\fI" + roff(option.names[0]) + "\\fR";
  if (!option.choices.empty()) {
    std::string choices;
    for (const std::string& choice : option.choices) choices += (choices.empty() ? "" : "|") + choice;
    return names + " \\fI" + roff(choices) + "\\fR";
  }
  return option.value.empty() ? names : names + " \\fI" + roff(option.value) + "\\fR";
}

std::string items(const std::vector<OptionDescription>& options) {
  std::string text;
  for (const OptionDescription& option : options) text += ".TP\n" + term(option) + "\n" + roff(option.about) + "\n";
  return text;
}

struct Entry {
  const char *name, *about;
};

constexpr Entry kExitCodes[] = {
    {"0", "something passed and nothing failed"},
    {"1",
     "something failed: a wrong result, refusals other than listed, a false statement, a speed that is lower or gone, "
     "or results that could not be written"},
    {"2", "the request was wrong: nothing ran"},
    {"3", "nothing passed and nothing failed"},
    {"130", "interrupted; files are complete and valid, and say so"},
};

constexpr Entry kEnvironment[] = {
    {"NO_COLOR", "set and not empty: no colours, unless --color asks for them"},
    {"ATTEST_CASES", "a folder of suites that is looked in first"},
    {"ATTEST_LISTS", "a folder of lists of refusals and waivers that is looked in first"},
    {"ATTEST_TUNED", "a file of attest tune that is read in place of the one in the cache"},
    {"ATTEST_PARAMETERS", "\"standard\", or parameters of backends as opencl.key_tile=256; no file is read"},
    {"ATTEST_FILE_GIB", "how large a file of tensors may be"},
    {"ATTEST_OPENCL_DEVICE", "part of the name of an OpenCL device or platform"},
};

template <std::size_t size>
std::string entries(const Entry (&list)[size]) {
  std::string text;
  for (const Entry& entry : list) text += fmt::format(".TP\n\\fB{}\\fR\n{}\n", roff(entry.name), roff(entry.about));
  return text;
}

std::string manual(const ProgramDescription& program) {
  std::string page = fmt::format(".TH ATTEST 1 \"\" \"attest {}\" \"User Commands\"\n", roff(program.version));
  page += ".SH NAME\nattest \\- whether an implementation of attention is right, and how fast it is\n";
  page += ".SH SYNOPSIS\n.B attest\n.I command\n[\\fIoption\\fR ...] [\\fIargument\\fR ...]\n";
  page += ".SH DESCRIPTION\n" +
          roff(
              "attest holds interchangeable backends of scaled dot-product attention against one reference. Its "
              "tolerances are derived for every output element. A case is one line of text:") +
          "\n" + verbatim("heads=8/2 seq=33x65 dim=64 causal align=bottom-right") +
          roff("The command \"attest list options\" prints the language of these lines.") + "\n";
  page += ".SH OPTIONS\n" + items(program.options) + ".SH COMMANDS\n";
  for (const CommandDescription& command : program.commands) {
    page += fmt::format(".SS attest {}\n{}\n", roff(command.name), roff(command.about));
    if (!command.example.empty()) page += ".PP\nExample:\n" + verbatim(command.example);
    page += items(command.options);
    if (!command.footer.empty()) page += ".PP\n" + verbatim(command.footer);
  }
  page += ".SH \"EXIT STATUS\"\n" + entries(kExitCodes) + ".SH ENVIRONMENT\n" + entries(kEnvironment);
  return page;
}

}  // namespace

void add_manual(CLI::App& app, Invocation& invocation) {
  auto* sub = add_command(app, "manual", "Print the manual page, for man.", "attest manual > attest.1");
  sub->callback([&app, &invocation] {
    fmt::print("{}", manual(describe_program(app)));
    invocation.exit_code = kOk;
  });
}

}  // namespace attest
