#include "harness/report/check_results.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "harness/base/text_file.h"
#include "harness/base/user_error.h"

namespace attest {
namespace {

namespace fs = std::filesystem;

/// The whole matrix on five backends takes 20 MiB, one verdict with its map some kilobytes.
constexpr std::uintmax_t kMaxResultsBytes = std::uintmax_t{1} << 30;
constexpr std::size_t kMaxResultsLineBytes = 1 << 20;

ShrunkFailure shrunk_from(const OrderedJson& json) {
  return {text_of(json, "case"),     text_of(json, "backend"),
          text_of(json, "smallest"), text_of(json, "reason"),
          text_of(json, "repro"),    json.contains("cause") ? text_of(json, "cause") : std::string()};
}

void read_summary(const OrderedJson& json, CheckResults& results) {
  if (const auto seconds = json.find("seconds"); seconds != json.end() && seconds->is_number())
    results.seconds = seconds->get<double>();
  results.interrupted = json.contains("interrupted");
  if (const auto told = json.find("right_if"); told != json.end() && told->is_object()) {
    for (const auto& [backend, one] : told->items())
      results.right_if.push_back({backend, text_of(one, "statement"), text_of(one, "code")});
  }
  if (const auto problems = json.find("problems"); problems != json.end() && problems->is_array()) {
    for (const OrderedJson& problem : *problems) {
      if (problem.is_string()) results.problems.push_back(problem.get<std::string>());
    }
  }
}

}  // namespace

CheckResults read_check(std::istream& file, const std::string& path) {
  CheckResults results;
  results.name = fs::path(path).filename().string();
  std::size_t number = 0;
  bool complete = false;
  for (Line line; read_line(file, line, kMaxResultsLineBytes);) {
    ++number;
    if (line.text.empty() && !line.too_long) continue;
    const OrderedJson json = OrderedJson::parse(line.text, nullptr, false);
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

CheckResults read_check(const fs::path& path) {
  std::ifstream file = open_text(path, kMaxResultsBytes);
  Line first;
  read_line(file, first, kMaxResultsLineBytes);
  if (!is_run_header(OrderedJson::parse(first.text, nullptr, false)))
    throw UserError(path.string() + ": is no file of verdicts; `attest check --json` writes them");
  file.clear();
  file.seekg(0);
  return read_check(file, path.string());
}

}  // namespace attest
