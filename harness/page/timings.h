// What one benchmark file says of each backend on each case, put together from its samples.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/speed/files/benchmark_file.h"

namespace attest {

/// Times are milliseconds; nothing where the file doesn't say.
struct Timing {
  std::string backend, case_line;
  std::vector<double> samples;      ///< of run(), those that count
  double run = 0;                   ///< their median
  std::optional<double> low, high;  ///< interval of the median
  std::optional<double> total, upload, download, prepare;
  std::optional<double> gflops, gbps, roof_fraction, error;
  std::optional<double> median_ulps, largest_ulps;  ///< errors of o, in units in the last place
  bool disturbed = false;                           ///< so often that all samples count
  std::string dtype;
  std::int64_t key_length = 0, head_dim = 0;  ///< 0 for what is no case line
  std::string but_length, but_dim;            ///< the case without its lengths, or without its head dim
};

/// In the order in which the file has them.
std::vector<Timing> timings_of(const BenchmarkFile& file);

/// A case line without the word of this key.
std::string without(const std::string& case_line, const std::string& key);

}  // namespace attest
