#include "harness/page/result_files.h"

#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "harness/base/text_file.h"
#include "harness/base/user_error.h"

namespace attest {
namespace {

namespace fs = std::filesystem;

/// The whole matrix on five backends takes 20 MiB, one verdict with its map some kilobytes.
constexpr std::uintmax_t kMaxFileBytes = std::uintmax_t{1} << 30;
constexpr std::size_t kMaxLineBytes = 1 << 20;

OrderedJson parsed(const std::string& text) { return OrderedJson::parse(text, nullptr, false); }

ShrunkFailure shrunk_from(const OrderedJson& json) {
  return {text_of(json, "case"), text_of(json, "backend"), text_of(json, "smallest"), text_of(json, "reason"),
          text_of(json, "repro")};
}

void read_summary(const OrderedJson& json, CheckResults& results) {
  if (const auto seconds = json.find("seconds"); seconds != json.end() && seconds->is_number())
    results.seconds = seconds->get<double>();
  results.interrupted = json.contains("interrupted");
  if (const auto problems = json.find("problems"); problems != json.end() && problems->is_array()) {
    for (const OrderedJson& problem : *problems) {
      if (problem.is_string()) results.problems.push_back(problem.get<std::string>());
    }
  }
}

CheckResults read_check(std::istream& file, const std::string& path) {
  CheckResults results;
  results.name = fs::path(path).filename().string();
  std::size_t number = 0;
  bool complete = false;
  for (Line line; read_line(file, line, kMaxLineBytes);) {
    ++number;
    if (line.text.empty() && !line.too_long) continue;
    const OrderedJson json = parsed(line.text);
    if (!json.is_object()) {
      throw UserError(fmt::format("{}:{}: no line of JSON; the file was cut off or changed", path, number));
    }
    const std::string kind = text_of(json, kKindKey);
    if (complete) throw UserError(fmt::format("{}:{}: the file goes on after its summary", path, number));
    if (kind == kRunKind && number == 1) {
      require_known_schema(json, path);
      results.header = json;
    } else if (kind == kVerdictKind) {
      std::optional<Verdict> verdict = verdict_from_json(json);
      if (!verdict)
        throw UserError(fmt::format("{}:{}: a verdict lacks a key, or has one of another type", path, number));
      results.verdicts.push_back(std::move(*verdict));
    } else if (kind == kShrunkKind) {
      results.shrunk.push_back(shrunk_from(json));
    } else if (kind == kSummaryKind) {
      read_summary(json, results);
      complete = true;
    } else if (kind != kKeptKind) {  // kept verdicts are of an earlier run and not of this one
      throw UserError(fmt::format("{}:{}: a line of an unknown kind", path, number));
    }
  }
  if (!complete) {
    throw UserError(path + ": ends before its summary; let the run finish with --resume, or copy the file again");
  }
  return results;
}

void read_one(const fs::path& path, ResultFiles& results) {
  std::ifstream file = open_text(path, kMaxFileBytes);
  Line first;
  read_line(file, first, kMaxLineBytes);
  const OrderedJson head = parsed(first.text);
  file.clear();
  file.seekg(0);
  const std::string name = path.filename().string();
  if (is_run_header(head)) {
    results.checks.push_back(read_check(file, path.string()));
    return;
  }
  std::ostringstream text;
  text << file.rdbuf();
  const OrderedJson whole = parsed(text.str());
  if (whole.is_object() && text_of(whole, kKindKey) == kComparisonKind) {
    results.comparisons.push_back({name, comparison_from_json(whole, path.string())});
  } else if (whole.is_object() && whole.contains("benchmarks")) {
    results.benches.push_back({name, benchmark_from_json(whole, path.string())});
  } else {
    throw UserError(path.string() +
                    ": no complete file of results; `check --json`, `bench --json` and `compare --json` write them");
  }
}

}  // namespace

ResultFiles read_results(const std::vector<fs::path>& paths) {
  ResultFiles results;
  for (const fs::path& path : paths) read_one(path, results);
  return results;
}

}  // namespace attest
