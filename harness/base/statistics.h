// Quantiles and variance of samples.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace attest {

/// Value below which the share `q` in [0, 1] of the samples lies, linear between neighbours; 0 without samples.
inline double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double at = q * static_cast<double>(values.size() - 1);
  const auto low = static_cast<std::size_t>(at);
  const std::size_t high = std::min(low + 1, values.size() - 1);
  return values[low] + (values[high] - values[low]) * (at - static_cast<double>(low));
}

inline double median(std::vector<double> values) { return quantile(std::move(values), 0.5); }

/// Sample variance, n - 1 in the denominator; 0 for fewer than two values.
inline double variance(const std::vector<double>& values) {
  if (values.size() < 2) return 0;
  double mean = 0, sum = 0;
  for (double v : values) mean += v / static_cast<double>(values.size());
  for (double v : values) sum += (v - mean) * (v - mean);
  return sum / static_cast<double>(values.size() - 1);
}

}  // namespace attest
