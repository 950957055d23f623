// Timing of one case on several backends, interleaved, each checked before and after.
#pragma once

#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "backends/backend.h"
#include "harness/base/statistics.h"
#include "harness/cases/case.h"
#include "harness/speed/roof.h"

namespace attest {

struct BenchSettings {
  int threads = 1;
  int repetitions = 9;
  double min_seconds = 0.1;
};

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
  std::vector<benchmark::BenchmarkReporter::Run> runs;  ///< for Google Benchmark's JSON
};

/// Runs Google Benchmark on the case. Useful work only: pairs that nobody sees don't count.
BenchCase bench_case(const Case& source, const std::vector<Backend*>& backends, const Roof& roof,
                     const BenchSettings& settings);

/// Prints the comparison: time, speed, fraction of the roof, ratio to the fastest with its range.
void print_bench_table(const BenchCase& result);

}  // namespace attest
