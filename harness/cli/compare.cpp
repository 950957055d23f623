// attest compare: two benchmark files, or two folders of files that were measured in turn.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "harness/base/output_file.h"
#include "harness/cli/command.h"
#include "harness/cli/number_range.h"
#include "harness/speed/compare_files.h"
#include "harness/speed/comparison_json.h"

namespace attest {
namespace {

struct CompareOptions {
  std::string before, now;  ///< files, or folders with files of the same names
  double margin = 0.05, confidence = 0.99;
  std::string json;
};

/// What the table says, for programs.
void write_json(OutputFile& file, const CompareOptions& options, const SpeedComparison& comparison,
                const std::vector<std::string>& words) {
  ComparisonFile content = comparison_file(comparison, options.before, options.now, options.confidence, options.margin);
  content.attest = ATTEST_VERSION;
  content.command = fmt::format("{}", fmt::join(words, " "));
  file.write(comparison_to_json(content).dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
  file.finish();
}

/// What can't be compared, and in what the two differ besides.
void print_differences(const SpeedComparison& comparison) {
  for (const std::string& key : comparison.only_before) fmt::print("only in old: {}\n", key);
  for (const std::string& key : comparison.only_now) fmt::print("only in new: {}\n", key);
  if (!comparison.unlike.empty()) {
    fmt::print("\nnot measured alike, old and new: {}\n", fmt::join(comparison.unlike, "; "));
  }
}

int run(const CompareOptions& options, const std::vector<std::string>& words) {
  const SpeedComparison comparison = compare_files(options.before, options.now, options.confidence);
  if (!options.json.empty()) {
    OutputFile file(options.json);
    write_json(file, options, comparison, words);
  }
  if (comparison.cases.empty()) {
    print_differences(comparison);
    std::fflush(stdout);
    fmt::print(stderr, "attest: nothing was compared: no case on a backend is in both\n");
    return kNothingChecked;
  }
  fmt::print("new over old, {} {:g}% interval, margin {:g}%\n\n",
             comparison.paired ? "of pairs measured in turn," : "of independent samples,", options.confidence * 100,
             options.margin * 100);
  std::map<SpeedVerdict, int> counts;
  for (const auto& [key, line] : comparison.cases) {
    const RatioInterval& r = line.interval;
    const bool enough = r.confidence >= options.confidence;
    const SpeedVerdict verdict = verdict_on(line, options.confidence, options.margin);
    ++counts[verdict];
    fmt::print("{:<9}  {:.3f}{} ({:.3f} to {:.3f})  {}{}{}\n", name_of(verdict), r.ratio, line.disturbed ? "?" : "",
               r.low, r.high, key, line.disturbed ? "   disturbed, not to be trusted" : "",
               enough ? "" : fmt::format("   too few samples: {} and {}", line.before, line.now));
  }
  print_differences(comparison);
  if (!comparison.paired) {
    fmt::print("\nTwo runs differ by what the machine did in between, too: folders measured in turn don't.\n");
  }
  fmt::print("\n{} faster, {} slower, {} same, {} ambiguous, {} only in old, {} only in new\n",
             counts[SpeedVerdict::faster], counts[SpeedVerdict::slower], counts[SpeedVerdict::same],
             counts[SpeedVerdict::ambiguous], comparison.only_before.size(), comparison.only_now.size());
  // A speed that is gone is no better than one that is lower.
  return counts[SpeedVerdict::slower] > 0 || !comparison.only_before.empty() ? kFailed : kOk;
}

}  // namespace

void add_compare(CLI::App& app, Invocation& invocation) {
  const auto options = std::make_shared<CompareOptions>();
  auto* sub =
      app.add_subcommand("compare",
                         "Example:\n  attest compare old.json new.json --margin 0.05\n\n"
                         "Two results of `attest bench --json`: faster, slower, same or ambiguous, case by case.\n"
                         "Two folders: files of the same name were measured in turn, and are paired.\n"
                         "Ends with 1 when something is slower, or only in the old one.");
  sub->add_option("old", options->before, "A benchmark file, or a folder of them")->required();
  sub->add_option("new", options->now, "Another")->required();
  sub->add_option("--margin", options->margin, "What counts as the same, as a fraction")
      ->check(number_range(0.0, 10.0));
  sub->add_option("--confidence", options->confidence, "Of the interval")->check(number_range(0.5, 0.9999));
  sub->add_option("--json", options->json, "Write what was compared to this file");
  sub->callback([options, &invocation] { invocation.exit_code = run(*options, invocation.words); });
}

}  // namespace attest
