// The files that a page is made of: results of check, bench, compare and judge, told apart by what stands in them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/report/check_results.h"
#include "harness/report/judgements.h"
#include "harness/speed/files/benchmark_file.h"
#include "harness/speed/files/comparison_json.h"

namespace attest {

/// A file of `attest bench --json`.
struct BenchResults {
  std::string name;
  BenchmarkFile file;
};

/// A file of `attest compare --json`.
struct CompareResults {
  std::string name;
  ComparisonFile file;
};

struct ResultFiles {
  std::vector<CheckResults> checks;
  std::vector<BenchResults> benches;
  std::vector<CompareResults> comparisons;
  std::vector<JudgementFile> judgements{};
};

/// Throws UserError, in one line that names the file, for one that can't be read, is no file of results, breaks off in
/// the middle, or is of a newer schema.
ResultFiles read_results(const std::vector<std::filesystem::path>& paths);

}  // namespace attest
