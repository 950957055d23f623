// attest merge: files of verdicts put together.
#include "harness/report/merge.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "harness/base/output_file.h"
#include "harness/base/text.h"
#include "harness/base/user_error.h"
#include "harness/cli/command.h"

namespace attest {
namespace {

constexpr std::size_t kShownDoubles = 3;

struct MergeOptions {
  std::vector<std::string> files;
  OutputOptions output;
  std::string json, junit, summary;

  bool json_on_stdout() const { return json == "-"; }
  std::FILE* console() const { return json_on_stdout() || output.for_programs() ? stderr : stdout; }
};

/// Outputs that would take the place of one another, or of what is read.
void require_places(const MergeOptions& options) {
  if (options.json_on_stdout() && options.output.for_programs())
    throw UserError("--format " + options.output.format + ": --json - has standard output; name a file for --json");
  std::vector<std::string> taken = options.files;
  for (const std::string& path : {options.json, options.junit, options.summary}) {
    if (path.empty() || path == "-") continue;
    for (const std::string& other : taken) {
      if (is_same_output(other, path))
        throw UserError(path + ": is read or written by this command already; name another file");
    }
    taken.push_back(path);
  }
}

std::vector<std::unique_ptr<Report>> open_reports(const MergeOptions& options) {
  std::vector<std::unique_ptr<Report>> reports;
  if (!options.json.empty()) reports.push_back(json_lines_report(options.json));
  if (!options.junit.empty()) reports.push_back(junit_report(options.junit));
  reports.push_back(console_report(options.output.console(options.console())));
  if (!options.summary.empty()) reports.push_back(markdown_summary(options.summary));
  return reports;
}

/// What a run that was not split would have no reason to say.
void print_about_parts(const MergedRun& run, const MergeOptions& options) {
  std::FILE* out = options.console();
  for (const std::string& one : run.differences) fmt::print(out, "{}\n", printable_line(one));
  if (run.doubles.empty()) return;
  fmt::print(out, "{} verdict{} double, counted once:\n", run.doubles.size(),
             run.doubles.size() == 1 ? " is" : "s are");
  std::size_t shown = 0;
  for (const std::string& one : run.doubles) {
    if (!options.output.verbose && ++shown > kShownDoubles) {
      fmt::print(out, "  ... and {} more (--verbose)\n", run.doubles.size() - kShownDoubles);
      break;
    }
    fmt::print(out, "  {}\n", printable_line(one));
  }
}

int run(const MergeOptions& options, const Invocation& invocation) {
  require_places(options);
  std::vector<CheckResults> parts;
  for (const std::string& file : options.files) parts.push_back(read_check(std::filesystem::path(file)));
  MergedRun merged = merge_runs(std::move(parts));
  merged.info.command = invocation.words;
  print_about_parts(merged, options);
  Counts counts;
  for (const Verdict& verdict : merged.verdicts) counts.add(verdict);
  const std::vector<std::string> unwritten = tell(merged, open_reports(options));
  for (const std::string& file : unwritten) fmt::print(stderr, "attest: {}\n", printable_line(file));
  if (!unwritten.empty() || counts.failures() > 0 || !merged.problems.empty()) return kFailed;
  if (counts.proved() > 0) return kOk;
  fmt::print(stderr, "attest: {}\n",
             counts.weak > 0 ? "what passed is weak: most of its bounds are as large as the values"
                             : "nothing passed in any of the parts");
  return kNothingChecked;
}

}  // namespace

void add_merge(CLI::App& app, Invocation& invocation) {
  const auto options = std::make_shared<MergeOptions>();
  auto* sub =
      add_command(app, "merge",
                  "Files of `check --json`, each of one shard, as the result of one run. Says what is missing, double, "
                  "or of other builds and machines.",
                  "attest merge part-1.jsonl part-2.jsonl --json whole.jsonl");
  sub->add_option("files", options->files, "Files of verdicts")->required()->type_name("FILE");
  sub->add_option("--json", options->json, "Write all of them as JSON Lines to this file; - is standard output")
      ->type_name("FILE");
  sub->add_option("--junit", options->junit, "Write JUnit XML to this file")->type_name("FILE");
  sub->add_option("--summary", options->summary, "Append a summary in Markdown to this file: $GITHUB_STEP_SUMMARY")
      ->type_name("FILE");
  add_format_option(*sub, options->output, "The table of backends; but for text alone on standard output");
  add_color_option(*sub, options->output);
  add_detail_options(*sub, options->output);
  sub->callback([options, &invocation] { invocation.exit_code = run(*options, invocation); });
}

}  // namespace attest
