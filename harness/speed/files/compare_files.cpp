#include "harness/speed/files/compare_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <sstream>
#include <vector>

#include "harness/base/statistics.h"
#include "harness/base/user_error.h"
#include "harness/speed/files/benchmark_file.h"

namespace attest {
namespace {

namespace fs = std::filesystem;

struct Round {
  BenchmarkFile before, now;
};

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const fs::path& path : benchmark_paths(folder)) names.insert(path.filename().string());
  return names;
}

/// Of two folders: the files that both have, by name. Says how many others there are.
std::vector<Round> read_rounds(const fs::path& before, const fs::path& now, std::vector<std::string>& unlike) {
  const std::set<std::string> ours = names_in(before), theirs = names_in(now);
  std::vector<Round> rounds;
  for (const std::string& name : ours) {
    if (theirs.contains(name)) rounds.push_back({read_benchmark(before / name), read_benchmark(now / name)});
  }
  if (rounds.empty()) throw UserError("no .json file of " + before.string() + " is in " + now.string() + " too");
  const std::size_t only_ours = ours.size() - rounds.size(), only_theirs = theirs.size() - rounds.size();
  if (only_ours + only_theirs > 0)
    unlike.push_back(fmt::format("files without a pair {} and {}", only_ours, only_theirs));
  return rounds;
}

std::set<std::string> timed_apart(const BenchmarkFile& file) {
  std::istringstream names(file.text(kTimedApartKey));
  std::set<std::string> all;
  for (std::string name; std::getline(names, name, ',');) all.insert(name);
  return all;
}

/// Backends of both sides that were timed apart on one alone. An older file says nothing.
std::set<std::string> timed_otherwise(const std::vector<Round>& rounds) {
  std::set<std::string> found;
  for (const auto& [before, now] : rounds) {
    if (!before.context.contains(kTimedApartKey) || !now.context.contains(kTimedApartKey)) continue;
    const std::set<std::string> ours = timed_apart(before), theirs = timed_apart(now);
    for (const auto& [key, samples] : before.samples) {
      const std::string backend = backend_and_case(key).first;
      if (now.samples.contains(key) && ours.contains(backend) != theirs.contains(backend)) found.insert(backend);
    }
  }
  return found;
}

/// Each difference once, however many rounds have it.
void find_unlike(const std::vector<Round>& rounds, std::vector<std::string>& unlike) {
  for (const char* what : {"cpu", "threads"}) {
    for (const auto& [before, now] : rounds) {
      const std::string a = before.text(what), b = now.text(what);
      if (a.empty() || b.empty() || a == b) continue;
      unlike.push_back(fmt::format("{} {} and {}", what, a, b));
      break;
    }
  }
  for (const std::string& backend : timed_otherwise(rounds))
    unlike.push_back(backend + " timed apart in one of them, its run with upload and download in it");
  const auto any = [&](BenchmarkFile Round::*side) {
    return std::any_of(rounds.begin(), rounds.end(), [&](const Round& round) { return (round.*side).interrupted; });
  };
  const bool before = any(&Round::before), now = any(&Round::now);
  if (before || now) unlike.push_back(fmt::format("interrupted {} and {}", before, now));
}

/// The samples of one key on both sides, or the medians of each round.
struct Sides {
  std::vector<double> before, now;
  bool disturbed = false;
};

/// Disturbed rounds are left out, unless that leaves fewer than half of them: the rule of samples.
Sides join(const Sides& undisturbed, const Sides& all) {
  return 2 * undisturbed.before.size() >= all.before.size() ? undisturbed : all;
}

std::map<std::string, Sides> sides_of(const std::vector<Round>& rounds, bool paired, SpeedComparison& comparison) {
  std::map<std::string, Sides> both, undisturbed;
  std::set<std::string> ours, theirs;
  for (const auto& [before, now] : rounds) {
    for (const auto& [key, list] : before.samples) {
      ours.insert(key);
      const auto other = now.samples.find(key);
      if (other == now.samples.end()) continue;
      const bool disturbed = before.disturbed.contains(key) || now.disturbed.contains(key);
      if (!paired) {
        both[key] = {list, other->second, disturbed};
        continue;
      }
      both[key].disturbed = both[key].disturbed || disturbed;
      for (Sides* sides : {&both[key], &undisturbed[key]}) {
        if (disturbed && sides == &undisturbed[key]) continue;
        sides->before.push_back(median(list));
        sides->now.push_back(median(other->second));
      }
    }
    for (const auto& [key, list] : now.samples) theirs.insert(key);
  }
  for (auto& [key, sides] : undisturbed) both[key] = join(sides, both[key]);
  std::set_difference(ours.begin(), ours.end(), theirs.begin(), theirs.end(),
                      std::back_inserter(comparison.only_before));
  std::set_difference(theirs.begin(), theirs.end(), ours.begin(), ours.end(), std::back_inserter(comparison.only_now));
  return both;
}

}  // namespace

SpeedComparison compare_files(const fs::path& before, const fs::path& now, double confidence) {
  SpeedComparison comparison;
  comparison.paired = fs::is_directory(before);
  if (comparison.paired != fs::is_directory(now))
    throw UserError("two files or two folders are wanted, not one of each");
  std::vector<Round> rounds;
  if (comparison.paired)
    rounds = read_rounds(before, now, comparison.unlike);
  else
    rounds.push_back({read_benchmark(before), read_benchmark(now)});
  find_unlike(rounds, comparison.unlike);
  for (const auto& [key, sides] : sides_of(rounds, comparison.paired, comparison)) {
    const RatioInterval interval = comparison.paired ? compare_pairs(sides.before, sides.now, confidence)
                                                     : compare_samples(sides.before, sides.now, confidence);
    comparison.cases[key] = {interval, sides.before.size(), sides.now.size(), sides.disturbed};
  }
  return comparison;
}

}  // namespace attest
