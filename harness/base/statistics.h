// Quantiles, mean and variance of samples.
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

inline double mean(const std::vector<double>& values) {
  double sum = 0;
  for (double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

/// Sum of the squared distances from the mean.
inline double squares_about_mean(const std::vector<double>& values) {
  const double middle = mean(values);
  double sum = 0;
  for (double value : values) sum += (value - middle) * (value - middle);
  return sum;
}

/// Of samples: n - 1 in the denominator; 0 below two samples.
inline double variance(const std::vector<double>& values) {
  return values.size() < 2 ? 0 : squares_about_mean(values) / static_cast<double>(values.size() - 1);
}

/// Of a whole population: n in the denominator.
inline double population_variance(const std::vector<double>& values) {
  return values.empty() ? 0 : squares_about_mean(values) / static_cast<double>(values.size());
}

}  // namespace attest
