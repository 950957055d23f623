#include "harness/cli/verdict_files.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <utility>

#include "harness/base/output_file.h"
#include "harness/base/text.h"
#include "harness/base/user_error.h"

namespace attest {
namespace {

void require_places(const VerdictFiles& files, const std::vector<std::string>& read) {
  const std::pair<const char*, const std::string*> written[] = {
      {"--json", &files.json}, {"--junit", &files.junit}, {"--summary", &files.summary}};
  for (const auto& [later, path] : written) {
    if (path->empty() || *path == "-") continue;
    for (const std::string& other : read) {
      if (is_same_output(other, *path))
        throw UserError(fmt::format("{} {}: this command reads this file; name another one", later, *path));
    }
    for (const auto& [earlier, other] : written) {
      if (later == earlier) break;
      if (other->empty() || !is_same_output(*other, *path)) continue;
      throw UserError(fmt::format("{} {}: {} writes this file; name another one", later, *path, earlier));
    }
  }
  if (files.json_on_stdout() && files.output.for_programs())
    throw UserError("--format " + files.output.format + ": --json - has standard output; name a file for --json");
}

}  // namespace

void add_verdict_files(CLI::App& app, VerdictFiles& files) {
  app.add_option("--json", files.json,
                 "Write JSON Lines to this file; - is standard output, and the table goes to standard error")
      ->type_name("FILE");
  app.add_option("--junit", files.junit, "Write JUnit XML to this file")->type_name("FILE");
  app.add_option("--summary", files.summary, "Append a summary in Markdown to this file: $GITHUB_STEP_SUMMARY")
      ->type_name("FILE");
  add_format_option(app, files.output, "The table of backends; but for text alone on standard output");
  add_color_option(app, files.output);
  add_detail_options(app, files.output);
}

std::vector<std::unique_ptr<Report>> open_reports(const VerdictFiles& files, const std::vector<std::string>& read) {
  require_places(files, read);
  std::vector<std::unique_ptr<Report>> reports;
  if (!files.json.empty()) reports.push_back(json_lines_report(files.json));
  if (!files.junit.empty()) reports.push_back(junit_report(files.junit));
  reports.push_back(console_report(files.output.console(files.console())));
  if (!files.summary.empty()) reports.push_back(markdown_summary(files.summary));
  return reports;
}

int exit_code_of(const Counts& counts, const std::vector<std::string>& unwritten, bool has_problems,
                 const std::string& nothing) {
  for (const std::string& file : unwritten) fmt::print(stderr, "attest: {}\n", printable_line(file));
  if (!unwritten.empty() || counts.failures() > 0 || has_problems) return kFailed;
  if (counts.proved() > 0) return kOk;
  fmt::print(stderr, "attest: {}\n",
             counts.weak > 0 ? "what passed is weak: most of its bounds are as large as the values" : nothing);
  return kNothingChecked;
}

}  // namespace attest
