// attest compare: two benchmark files, or two folders of files that were measured in turn.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "harness/cli/cli.h"
#include "harness/quantile.h"
#include "harness/speed_comparison.h"
#include "harness/user_error.h"

namespace attest {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

/// Samples of run() in milliseconds, by "backend  case".
using Samples = std::map<std::string, std::vector<double>>;

double milliseconds(double time, const std::string& unit) {
  return unit == "ns" ? time / 1e6 : unit == "us" ? time / 1e3 : unit == "s" ? time * 1e3 : time;
}

Samples read_samples(const fs::path& path) {
  std::ifstream file(path);
  if (!file) throw UserError(path.string() + ": can't be read");
  const Json json = Json::parse(file, nullptr, false);
  if (json.is_discarded() || !json.contains("benchmarks") || !json["benchmarks"].is_array()) {
    throw UserError(path.string() + ": no benchmark file; `attest bench --json FILE` writes one");
  }
  Samples samples;
  try {
    for (const Json& run : json["benchmarks"]) {
      if (run.value("run_type", "iteration") != "iteration") continue;
      const std::string name = run.at("name").get<std::string>();
      const double time = milliseconds(run.at("real_time").get<double>(), run.value("time_unit", "ns"));
      if (!(time > 0)) throw UserError(path.string() + ": " + name + ": a time that is not above 0");
      samples[fmt::format("{:<9} {}", name.substr(0, name.find('/')), run.value("label", ""))].push_back(time);
    }
  } catch (const Json::exception& error) {
    throw UserError(path.string() + ": " + error.what());
  }
  if (samples.empty()) throw UserError(path.string() + ": no samples in it");
  return samples;
}

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
  fmt::print("\n{} faster, {} slower, {} same, {} ambiguous\n", counts[SpeedVerdict::faster],
             counts[SpeedVerdict::slower], counts[SpeedVerdict::same], counts[SpeedVerdict::ambiguous]);
  return counts[SpeedVerdict::slower] > 0 ? kFailed : kOk;
}

}  // namespace attest
