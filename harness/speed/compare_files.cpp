#include "harness/speed/compare_files.h"

#include <set>
#include <utility>
#include <vector>

#include "harness/base/statistics.h"
#include "harness/base/user_error.h"
#include "harness/speed/benchmark_file.h"

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

std::map<std::string, ComparedCase> compare_two(const Samples& before, const Samples& now, double confidence) {
  std::map<std::string, ComparedCase> cases;
  for (const auto& [key, list] : before) {
    const auto other = now.find(key);
    if (other == now.end()) continue;
    cases[key] = {compare_samples(list, other->second, confidence), list.size(), other->second.size()};
  }
  return cases;
}

std::map<std::string, ComparedCase> compare_rounds(const std::vector<std::pair<Samples, Samples>>& rounds,
                                                   double confidence) {
  std::map<std::string, std::pair<std::vector<double>, std::vector<double>>> pairs;
  for (const auto& [before, now] : rounds) {
    for (const auto& [key, list] : before) {
      const auto other = now.find(key);
      if (other == now.end()) continue;
      pairs[key].first.push_back(median(list));
      pairs[key].second.push_back(median(other->second));
    }
  }
  std::map<std::string, ComparedCase> cases;
  for (const auto& [key, lists] : pairs) {
    cases[key] = {compare_pairs(lists.first, lists.second, confidence), lists.first.size(), lists.second.size()};
  }
  return cases;
}

}  // namespace

SpeedComparison compare_files(const fs::path& before, const fs::path& now, double confidence) {
  const bool paired = fs::is_directory(before);
  if (paired != fs::is_directory(now)) throw UserError("two files or two folders are wanted, not one of each");
  if (paired) return {true, compare_rounds(read_rounds(before, now), confidence)};
  return {false, compare_two(read_samples(before), read_samples(now), confidence)};
}

}  // namespace attest
