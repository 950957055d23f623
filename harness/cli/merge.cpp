// attest merge: files of verdicts put together.
#include "harness/report/merge.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "harness/base/text.h"
#include "harness/cli/command.h"
#include "harness/cli/verdict_files.h"

namespace attest {
namespace {

constexpr std::size_t kShownDoubles = 3;

struct MergeOptions {
  std::vector<std::string> read;
  VerdictFiles files;
};

/// What a run that was not split would have no reason to say.
void print_about_parts(const MergedRun& run, const MergeOptions& options) {
  std::FILE* out = options.files.console();
  for (const std::string& one : run.differences) fmt::print(out, "{}\n", printable_line(one));
  if (run.doubles.empty()) return;
  fmt::print(out, "{} verdict{} double, counted once:\n", run.doubles.size(),
             run.doubles.size() == 1 ? " is" : "s are");
  std::size_t shown = 0;
  for (const std::string& one : run.doubles) {
    if (!options.files.output.verbose && ++shown > kShownDoubles) {
      fmt::print(out, "  ... and {} more (--verbose)\n", run.doubles.size() - kShownDoubles);
      break;
    }
    fmt::print(out, "  {}\n", printable_line(one));
  }
}

int run(const MergeOptions& options, const Invocation& invocation) {
  std::vector<CheckResults> parts;
  for (const std::string& file : options.read) parts.push_back(read_check(std::filesystem::path(file)));
  MergedRun merged = merge_runs(std::move(parts));
  merged.info.command = invocation.words;
  print_about_parts(merged, options);
  Counts counts;
  for (const Verdict& verdict : merged.verdicts) counts.add(verdict);
  const std::vector<std::string> unwritten = tell(merged, open_reports(options.files, options.read));
  return exit_code_of(counts, unwritten, !merged.problems.empty(), "nothing passed in any of the parts");
}

}  // namespace

void add_merge(CLI::App& app, Invocation& invocation) {
  const auto options = std::make_shared<MergeOptions>();
  auto* sub =
      add_command(app, "merge",
                  "Files of `check --json`, each of one shard, as the result of one run. Says what is missing, double, "
                  "or of other builds and machines.",
                  "attest merge part-1.jsonl part-2.jsonl --json whole.jsonl");
  sub->add_option("files", options->read, "Files of verdicts")->required()->type_name("FILE");
  add_verdict_files(*sub, options->files);
  sub->callback([options, &invocation] { invocation.exit_code = run(*options, invocation); });
}

}  // namespace attest
