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

/// Opens the files, so that an unwritable path costs nothing. Throws UserError where one would take the place of
/// another, or of a file of `read`.
std::vector<std::unique_ptr<Report>> open_reports(const VerdictFiles& files, const std::vector<std::string>& read = {});

}  // namespace attest
