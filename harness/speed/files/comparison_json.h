// What `attest compare --json` writes, and reads back for a page.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/speed/files/compare_files.h"

namespace attest {

/// What stands in the key "kind" of the file.
inline constexpr const char* kComparisonKind = "compare";
inline constexpr int kComparisonSchema = 1;

/// One line of the table.
struct ComparisonLine {
  std::string backend, case_line;
  SpeedVerdict verdict = SpeedVerdict::ambiguous;
  RatioInterval interval;
  std::size_t before = 0, now = 0;  ///< samples, or pairs
  bool disturbed = false;
};

/// One side: a benchmark file, or a folder of them by what its first says.
struct ComparisonSide {
  std::string name, commit, cpu, threads, build, date;
};

struct ComparisonFile {
  std::string attest, command;
  bool paired = false;
  double margin = 0, confidence = 0;
  ComparisonSide before, now;
  std::vector<ComparisonLine> lines;
  std::vector<std::string> only_before, only_now, unlike;
};

/// The verdict on one compared case: ambiguous where its samples are too few or were disturbed.
SpeedVerdict verdict_on(const ComparedCase& one, double confidence, double margin);

/// A comparison with what both sides say of themselves. `before` and `now` are as they were given to compare_files.
/// Throws UserError.
ComparisonFile comparison_file(const SpeedComparison& comparison, const std::filesystem::path& before,
                               const std::filesystem::path& now, double confidence, double margin);

nlohmann::ordered_json comparison_to_json(const ComparisonFile& file);
/// Throws UserError where `json` is of a newer schema or lacks what comparison_to_json writes; `name` stands in
/// messages.
ComparisonFile comparison_from_json(const nlohmann::ordered_json& json, const std::string& name);

}  // namespace attest
