// What the bounds of linear attention and of its gradients share: limits of an accumulator, and what a decay costs.
#pragma once

#include <cmath>
#include <vector>

#include "reference/arithmetic/rounding.h"

namespace attest {

/// Unit roundoff, underflow and range of an accumulator.
struct AccumulatorLimits {
  double u, eta, half_range;
  explicit AccumulatorLimits(const Arithmetic& a)
      : u(unit_roundoff(a.accumulator)),
        eta(underflow_unit(a.accumulator, a.flush_to_zero)),
        half_range(largest_of(a.accumulator) / 2) {}
  double gamma(double k) const { return k * u / (1 - k * u); }
};

/// What one product with exp(log) adds to the error of a number of this size.
inline double decay_error(const Arithmetic& a, double log, double decay, double size) {
  const AccumulatorLimits limits(a);
  const double e_exp = 2 * limits.u * a.exp_ulps + (a.base2 ? 3 * limits.u * std::fabs(log) : 0);
  return decay * (e_exp + limits.u * (1 + e_exp)) * size + limits.eta * (size + 1);
}

inline double euclidean_norm(const std::vector<double>& v) {
  double sum = 0;
  for (double x : v) sum += x * x;
  return std::sqrt(sum);
}

}  // namespace attest
