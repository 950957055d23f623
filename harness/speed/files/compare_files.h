// Whether the backends of one benchmark are slower than in another, case by case.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "harness/speed/samples/speed_comparison.h"

namespace attest {

struct ComparedCase {
  RatioInterval interval;
  std::size_t before, now;  ///< samples, or pairs
  bool disturbed = false;   ///< on one side or both, so often that nothing can be said
};

struct SpeedComparison {
  bool paired = false;                             ///< two folders of files that were measured in turn
  std::map<std::string, ComparedCase> cases;       ///< by "backend  case", those that both sides have
  std::vector<std::string> only_before, only_now;  ///< keys that one side alone has, sorted
  /// In what the two were not measured alike: other processors or threads, an end before all was measured, a file that
  /// one folder alone has. A few words each; the values of one side and the other.
  std::vector<std::string> unlike;
};

/// Two files of `attest bench --json`, or two folders of them. Throws UserError.
SpeedComparison compare_files(const std::filesystem::path& before, const std::filesystem::path& now, double confidence);

}  // namespace attest
