#include "harness/speed/sample_interval.h"

#include <algorithm>
#include <cmath>

namespace attest {

SampleInterval interval_of_median(std::vector<double> samples, double confidence) {
  if (samples.empty()) return {};
  std::sort(samples.begin(), samples.end());
  const std::size_t n = samples.size();
  double probability = std::exp2(-static_cast<double>(n));  // of k heads among n coins, k = 0 first
  double fewer = probability;                               // than k + 1
  std::size_t k = 0;
  while (2 * (k + 1) < n) {
    probability *= static_cast<double>(n - k) / static_cast<double>(k + 1);
    if (2 * (fewer + probability) > 1 - confidence) break;
    fewer += probability;
    ++k;
  }
  return {samples[k], samples[n - 1 - k], std::max(0.0, 1 - 2 * fewer)};
}

}  // namespace attest
