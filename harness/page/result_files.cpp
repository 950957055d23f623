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
  if (is_judgement(head)) {
    results.judgements.push_back(read_judgements(path));
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
    throw UserError(
        path.string() +
        ": no complete file of results; `check --json`, `bench --json`, `compare --json` and `judge DIR --json` "
        "write them");
  }
}

}  // namespace

ResultFiles read_results(const std::vector<fs::path>& paths) {
  ResultFiles results;
  for (const fs::path& path : paths) read_one(path, results);
  return results;
}

}  // namespace attest
