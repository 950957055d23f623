// Google Benchmark's own records of a case, for its file; kept out of the other headers.
#pragma once

#include <benchmark/benchmark.h>

#include <vector>

namespace attest {

struct GoogleRuns {
  std::vector<benchmark::BenchmarkReporter::Run> list;
};

}  // namespace attest
