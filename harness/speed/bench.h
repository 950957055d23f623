// Timing of one case on several backends, interleaved, each checked before and after.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "harness/cases/case.h"
#include "harness/speed/roof.h"

namespace attest {

struct BenchSettings {
  int threads = 1;
  int repetitions = 9;
  double min_seconds = 0.1;
};

struct GoogleRuns;  // google_runs.h

/// What the table shows for one backend on one case. `wrong` is empty for a result that was right before and after.
struct BenchLine {
  std::string backend, wrong;
  std::vector<double> seconds;  ///< one sample a repetition, of run() alone
  double total_seconds = 0;     ///< upload + run + download, median of three
  double gflops = 0, gbps = 0, roof_fraction = 0, error_over_bound = 0;

  double median() const;
  /// Distance between the quartiles as a fraction of the median.
  double spread() const;
};

struct BenchCase {
  std::string case_line;
  std::vector<BenchLine> lines;
  std::shared_ptr<const GoogleRuns> runs;  ///< for its file (write_benchmark.h)
};

/// Runs Google Benchmark on the case. Useful work only: pairs that nobody sees don't count.
BenchCase bench_case(const Case& source, const std::vector<Backend*>& backends, const Roof& roof,
                     const BenchSettings& settings);

}  // namespace attest
