// attest compare: two benchmark files, or two folders of files that were measured in turn.
#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <set>

#include "harness/base/statistics.h"
#include "harness/base/user_error.h"
#include "harness/cli/cli.h"
#include "harness/speed/benchmark_file.h"
#include "harness/speed/speed_comparison.h"

namespace attest {
namespace {

namespace fs = std::filesystem;

/// Of two folders: the files that both have, by name.
std::vector<std::pair<Samples, Samples>> read_rounds(const fs::path& before, const fs::path& now) {
  std::vector<std::pair<Samples, Samples>> rounds;
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(before)) {
    if (entry.path().extension() == ".json") names.insert(entry.path().filename().string());
  }
  for (const std::string& name : names) {
    std::error_code error;
    if (fs::exists(now / name, error)) rounds.emplace_back(read_samples(before / name), read_samples(now / name));
  }
  if (rounds.empty()) throw UserError("no .json file of " + before.string() + " is in " + now.string() + " too");
  return rounds;
}

struct Line {
  RatioInterval interval;
  std::size_t before, now;  ///< samples, or pairs
};

std::map<std::string, Line> compare_all(const CompareOptions& options, bool& paired) {
  std::map<std::string, Line> lines;
  paired = fs::is_directory(options.before);
  if (paired != fs::is_directory(options.now)) throw UserError("two files or two folders are wanted, not one of each");
  if (!paired) {
    const Samples before = read_samples(options.before), now = read_samples(options.now);
    for (const auto& [key, list] : before) {
      const auto other = now.find(key);
      if (other == now.end()) continue;
      lines[key] = {compare_samples(list, other->second, options.confidence), list.size(), other->second.size()};
    }
    return lines;
  }
  std::map<std::string, std::pair<std::vector<double>, std::vector<double>>> pairs;
  for (const auto& [before, now] : read_rounds(options.before, options.now)) {
    for (const auto& [key, list] : before) {
      const auto other = now.find(key);
      if (other == now.end()) continue;
      pairs[key].first.push_back(median(list));
      pairs[key].second.push_back(median(other->second));
    }
  }
  for (const auto& [key, lists] : pairs) {
    lines[key] = {compare_pairs(lists.first, lists.second, options.confidence), lists.first.size(),
                  lists.second.size()};
  }
  return lines;
}

}  // namespace

int run_compare(const CompareOptions& options) {
  bool paired = false;
  const std::map<std::string, Line> lines = compare_all(options, paired);
  if (lines.empty()) {
    fmt::print(stderr, "attest: nothing was compared: no case on a backend is in both\n");
    return kNothingChecked;
  }
  fmt::print("new over old, {} {:g}% interval, margin {:g}%\n\n",
             paired ? "of pairs measured in turn," : "of independent samples,", options.confidence * 100,
             options.margin * 100);
  std::map<SpeedVerdict, int> counts;
  for (const auto& [key, line] : lines) {
    const RatioInterval& r = line.interval;
    const bool enough = r.confidence >= options.confidence;
    const SpeedVerdict verdict = enough ? judge(r, options.margin) : SpeedVerdict::ambiguous;
    ++counts[verdict];
    fmt::print("{:<9}  {:.3f} ({:.3f} to {:.3f})  {}{}\n", name_of(verdict), r.ratio, r.low, r.high, key,
               enough ? "" : fmt::format("   too few samples: {} and {}", line.before, line.now));
  }
  if (!paired) {
    fmt::print("\nTwo runs differ by what the machine did in between, too: folders measured in turn don't.\n");
  }
  fmt::print("\n{} faster, {} slower, {} same, {} ambiguous\n", counts[SpeedVerdict::faster],
             counts[SpeedVerdict::slower], counts[SpeedVerdict::same], counts[SpeedVerdict::ambiguous]);
  return counts[SpeedVerdict::slower] > 0 ? kFailed : kOk;
}

}  // namespace attest
