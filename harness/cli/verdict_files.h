// Where a command that judges writes its verdicts: the files that it is told to, and the console.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "harness/cli/command.h"
#include "harness/report/report.h"

namespace attest {

/// What --json, --junit and --summary name, and how the table looks.
struct VerdictFiles {
  std::string json, junit, summary;
  OutputOptions output;

  bool json_on_stdout() const { return json == "-"; }
  /// Where people are told: standard output, unless it is for programs.
  std::FILE* console() const { return json_on_stdout() || output.for_programs() ? stderr : stdout; }
};

/// --json, --junit, --summary, --format, --color and the options of detail.
void add_verdict_files(CLI::App& app, VerdictFiles& files);

/// The reports of a command, their files opened. To be called before work that an unwritable path would make vain.
/// Throws UserError where one file would take the place of another, or of a file of `read`; OutputError.
std::vector<std::unique_ptr<Report>> open_reports(const VerdictFiles& files, const std::vector<std::string>& read = {});

/// The exit code of a command that puts verdicts together. Says on standard error which files are `unwritten`, and why
/// nothing was proved: `nothing` where nothing passed.
int exit_code_of(const Counts& counts, const std::vector<std::string>& unwritten, bool has_problems,
                 const std::string& nothing);

}  // namespace attest
