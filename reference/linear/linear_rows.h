// Rows of q and k as linear attention multiplies them. With Call::l2norm a row x becomes x / sqrt(sum of x_t^2 + eps),
// before the scale; compare `use_qk_l2norm_in_kernel` of flash-linear-attention.
//
// With n features, u and eta of the accumulator, the sum of squares is off by n + 2 roundings of each term and what its
// terms lose by underflow. The root halves that. It may come from a reciprocal, and a product with it may take the
// place of the division or stand behind the sum over features: kRootRoundings covers both, as in softmax attention.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "reference/call/call.h"
#include "reference/call/tensors.h"
#include "reference/linear/linear_rounding.h"

namespace attest {

/// Reads row (b, h, l) of q or k, of Dk features, and gives what it was divided by; 1 without a norm.
inline double read_linear_row(const Call& p, const ConstTensor& t, std::int64_t b, std::int64_t h, std::int64_t l,
                              std::vector<double>& to) {
  to.resize(static_cast<std::size_t>(p.key_dim));
  double squares = 0;
  for (std::size_t d = 0; d < to.size(); ++d) {
    to[d] = load(t.data, t.dtype, t.offset(b, h, l, static_cast<std::int64_t>(d)));
    squares += to[d] * to[d];
  }
  if (!p.l2norm) return 1;
  const double root = std::sqrt(squares + *p.l2norm);
  for (double& x : to) x /= root;
  return root;
}

/// How far a root that divides sums in place of elements moves them within the range.
inline double stretch_of(double root) { return std::max(root, 1 / root); }

/// |computed - exact| of each element, in an accumulator; infinite where the sum of squares may overflow.
inline std::vector<double> linear_row_error(const Call& p, const std::vector<double>& row, double root,
                                            const AccumulatorLimits& limits) {
  std::vector<double> error(row.size());
  if (!p.l2norm) return error;
  constexpr double kRootRoundings = 12;
  const auto n = static_cast<double>(row.size());
  const double squares = root * root;
  const double of_squares = limits.gamma(n + 2) + (2 * n + 2) * limits.eta / squares;
  if (!(squares <= limits.half_range) || (n + 2) * limits.u >= 1 || of_squares >= 1) {
    error.assign(error.size(), kInfinity);
    return error;
  }
  const double relative = std::expm1(-std::log1p(-of_squares) / 2 - kRootRoundings * std::log1p(-limits.u));
  const double underflow = limits.eta * (2 + 1 / root);
  for (std::size_t d = 0; d < error.size(); ++d) error[d] = (relative * std::fabs(row[d]) + underflow) * kEvaluation;
  return error;
}

/// |x| and its error: as large as what was computed may be.
inline std::vector<double> largest_of_row(const std::vector<double>& row, const std::vector<double>& error) {
  std::vector<double> largest(row.size());
  for (std::size_t d = 0; d < largest.size(); ++d) largest[d] = std::fabs(row[d]) + error[d];
  return largest;
}

}  // namespace attest
