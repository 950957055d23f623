// Whether the backends of one benchmark are slower than in another, case by case.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "harness/speed/speed_comparison.h"

namespace attest {

struct ComparedCase {
  RatioInterval interval;
  std::size_t before, now;  ///< samples, or pairs
};

struct SpeedComparison {
  bool paired = false;                        ///< two folders of files that were measured in turn
  std::map<std::string, ComparedCase> cases;  ///< by "backend  case", those that both sides have
};

/// Two files of `attest bench --json`, or two folders of them. Throws UserError.
SpeedComparison compare_files(const std::filesystem::path& before, const std::filesystem::path& now, double confidence);

}  // namespace attest
