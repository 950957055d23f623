#include "harness/speed/samples/sample_interval.h"

#include <algorithm>
#include <cmath>

namespace attest {

SampleInterval interval_of_median(std::vector<double> samples, double confidence) {
  if (samples.empty()) return {};
  std::sort(samples.begin(), samples.end());
  const std::size_t n = samples.size();
  // Of so many heads among n coins; by logarithms, since 2^-n leaves a double's range.
  const auto probability = [n](std::size_t heads) {
    const auto all = static_cast<double>(n), some = static_cast<double>(heads);
    return std::exp(std::lgamma(all + 1) - std::lgamma(some + 1) - std::lgamma(all - some + 1) - all * std::log(2));
  };
  double fewer = probability(0);  // than k + 1
  std::size_t k = 0;
  while (2 * (k + 1) < n) {
    const double next = probability(k + 1);
    if (2 * (fewer + next) > 1 - confidence) break;
    fewer += next;
    ++k;
  }
  return {samples[k], samples[n - 1 - k], std::max(0.0, 1 - 2 * fewer)};
}

}  // namespace attest
