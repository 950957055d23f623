// attest compare: two benchmark files, or two folders of files that were measured in turn.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "harness/base/output_file.h"
#include "harness/base/text.h"
#include "harness/base/user_error.h"
#include "harness/cli/command.h"
#include "harness/cli/number_range.h"
#include "harness/speed/files/benchmark_file.h"
#include "harness/speed/files/compare_files.h"
#include "harness/speed/files/comparison_json.h"

namespace attest {
namespace {

struct CompareOptions {
  std::string before, now;  ///< files, or folders with files of the same names
  double margin = 0.05, confidence = 0.99;
  std::string json;
  OutputOptions output;

  bool json_on_stdout() const { return json == "-"; }
  /// Where the lines for people go.
  std::FILE* console() const { return json_on_stdout() || output.for_programs() ? stderr : stdout; }
};

/// What the table says, for programs.
void write_json(const CompareOptions& options, const SpeedComparison& comparison,
                const std::vector<std::string>& words) {
  ComparisonFile content = comparison_file(comparison, options.before, options.now, options.confidence, options.margin);
  content.attest = ATTEST_VERSION;
  content.command = join_texts(words, " ");
  const std::string text =
      comparison_to_json(content).dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  if (options.json_on_stdout()) {  // what can't be written shows in ferror() at the end
    fmt::print("{}", text);
    return;
  }
  OutputFile file(options.json);
  file.write(text);
  file.finish();
}

std::string remark_on(const ComparedCase& one, double confidence) {
  if (one.disturbed) return "disturbed, not to be trusted";
  if (one.interval.confidence >= confidence) return "";
  return fmt::format("too few samples: {} and {}", one.before, one.now);
}

/// A row for each speed, also for those of one side alone.
Table rows_of(const SpeedComparison& comparison, const CompareOptions& options) {
  Table table({{"verdict"},
               {"ratio", true},
               {"low", true},
               {"high", true},
               {"covered", true},
               {"backend"},
               {"case"},
               {"samples, old", true},
               {"samples, new", true},
               {"remark"}});
  for (const auto& [key, one] : comparison.cases) {
    const auto [backend, line] = backend_and_case(key);
    const RatioInterval& r = one.interval;
    table.add({std::string(name_of(verdict_on(one, options.confidence, options.margin))),
               fmt::format("{:.5g}", r.ratio), fmt::format("{:.5g}", r.low), fmt::format("{:.5g}", r.high),
               fmt::format("{:.3g}", r.confidence), backend, line, std::to_string(one.before), std::to_string(one.now),
               remark_on(one, options.confidence)});
  }
  for (const auto& [verdict, keys] :
       {std::pair{"only in old", &comparison.only_before}, std::pair{"only in new", &comparison.only_now}}) {
    for (const std::string& key : *keys) {
      const auto [backend, line] = backend_and_case(key);
      table.add({verdict, "", "", "", "", backend, line, "", "", ""});
    }
  }
  return table;
}

/// What can't be compared, and in what the two differ besides.
void print_differences(const SpeedComparison& comparison, std::FILE* out) {
  for (const std::string& key : comparison.only_before) fmt::print(out, "only in old: {}\n", key);
  for (const std::string& key : comparison.only_now) fmt::print(out, "only in new: {}\n", key);
  if (!comparison.unlike.empty()) {
    fmt::print(out, "\nnot measured alike, old and new: {}\n", join_texts(comparison.unlike, "; "));
  }
}

int run(const CompareOptions& options, const std::vector<std::string>& words) {
  if (options.json_on_stdout() && options.output.for_programs()) {
    throw UserError("--format " + options.output.format + ": --json - has standard output; name a file for --json");
  }
  std::FILE* out = options.console();
  const SpeedComparison comparison = compare_files(options.before, options.now, options.confidence);
  if (!options.json.empty()) write_json(options, comparison, words);
  if (options.output.for_programs()) fmt::print("{}", rows_of(comparison, options).printed(options.output.table()));
  if (comparison.cases.empty()) {
    print_differences(comparison, out);
    std::fflush(out);
    fmt::print(stderr, "attest: nothing was compared: no case on a backend is in both\n");
    return kNothingChecked;
  }
  fmt::print(out, "new over old, {} {:g}% interval, margin {:g}%\n\n",
             comparison.paired ? "of pairs measured in turn," : "of independent samples,", options.confidence * 100,
             options.margin * 100);
  std::map<SpeedVerdict, int> counts;
  for (const auto& [key, line] : comparison.cases) {
    const RatioInterval& r = line.interval;
    const std::string remark = remark_on(line, options.confidence);
    const SpeedVerdict verdict = verdict_on(line, options.confidence, options.margin);
    ++counts[verdict];
    if (options.output.for_programs()) continue;
    fmt::print(out, "{:<9}  {:.3f}{} ({:.3f} to {:.3f})  {}{}{}\n", name_of(verdict), r.ratio,
               line.disturbed ? "?" : "", r.low, r.high, key, remark.empty() ? "" : "   ", remark);
  }
  print_differences(comparison, out);
  if (!comparison.paired) {
    fmt::print(out, "\nTwo runs differ by what the machine did in between, too: folders measured in turn don't.\n");
  }
  fmt::print(out, "\n{} faster, {} slower, {} same, {} ambiguous, {} only in old, {} only in new\n",
             counts[SpeedVerdict::faster], counts[SpeedVerdict::slower], counts[SpeedVerdict::same],
             counts[SpeedVerdict::ambiguous], comparison.only_before.size(), comparison.only_now.size());
  // A speed that is gone is no better than one that is lower.
  return counts[SpeedVerdict::slower] > 0 || !comparison.only_before.empty() ? kFailed : kOk;
}

}  // namespace

void add_compare(CLI::App& app, Invocation& invocation) {
  const auto options = std::make_shared<CompareOptions>();
  auto* sub =
      add_command(app, "compare",
                  "Two results of `attest bench --json`: faster, slower, same or ambiguous, case by case. Two folders: "
                  "files of the same name were measured in turn, and are paired. Ends with 1 when something is slower, "
                  "or only in the old one.",
                  "attest compare old.json new.json --margin 0.05");
  sub->add_option("old", options->before, "A benchmark file, or a folder of them")->required();
  sub->add_option("new", options->now, "Another")->required();
  sub->add_option("--margin", options->margin, "What counts as the same, as a fraction")
      ->check(number_range(0.0, 10.0));
  sub->add_option("--confidence", options->confidence, "Of the interval")->check(number_range(0.5, 0.9999));
  sub->add_option("--json", options->json,
                  "Write what was compared to this file; - is standard output, and the lines go to standard error")
      ->type_name("FILE");
  add_format_option(*sub, options->output, "One table of all ratios");
  sub->callback([options, &invocation] { invocation.exit_code = run(*options, invocation.words); });
}

}  // namespace attest
