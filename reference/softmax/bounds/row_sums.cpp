#include "reference/softmax/bounds/row_sums.h"

#include <algorithm>
#include <cmath>

#include "reference/arithmetic/producer.h"

namespace attest {
namespace {

/// exp(2 max t_j), t_j being the error of the reference's own exp(s_j - m): a weight has that of its term and that of
/// the sum of all terms.
double ratio_of_weights(const Row& row, const std::vector<ScoreErrors>& errors, const BoundConstants& c) {
  double of_maximum = 0;
  for (std::size_t j = 0; j < errors.size(); ++j) {
    if (!row.seen[j]) continue;
    of_maximum = std::max(of_maximum, errors[j].biased - (row.max - row.biased[j]));
  }
  constexpr double kLeast = -745, kMost = 700;  // of the logarithm of a double
  double largest = c.e_exp;
  for (std::size_t j = 0; j < errors.size(); ++j) {
    const double below = row.max - row.biased[j];
    if (!row.seen[j] || below == kInfinity) continue;
    const double exponent = errors[j].biased + c.u * below + c.u * (errors[j].biased + of_maximum) + c.e_exp;
    // Its weight is 0 all the same: a mask may hold the lowest number there is.
    if (2 * exponent - below < kLeast) continue;
    largest = std::max(largest, exponent);
  }
  return std::exp(std::min(2 * largest, kMost));
}

}  // namespace

RowSums row_sums(const Head& head, const Row& row, std::int64_t i) {
  return row_sums(head, row, i, BoundConstants(head.call(), {reference_arithmetic(), DType::f64}));
}

RowSums row_sums(const Head& head, const Row& row, std::int64_t i, const BoundConstants& of_reference) {
  const std::size_t columns = row.output.size();
  const std::vector<double> zeros(columns);
  RowSums sums{
      std::vector<double>(row.seen.size()), 0, 1, score_errors(head, row, i, of_reference), zeros, zeros, zeros};
  if (row.visible_count == 0) return sums;
  sums.ratio = ratio_of_weights(row, sums.reference_errors, of_reference);
  const bool has_sink = row.sink != -kInfinity;
  std::vector<double> lowest(columns, has_sink ? 0 : kInfinity), highest(columns, has_sink ? 0 : -kInfinity);
  double* __restrict spread = sums.spread.data();
  double* __restrict largest = sums.largest.data();
  double* __restrict absolute = sums.absolute.data();
  for (std::size_t j = 0; j < row.seen.size(); ++j) {
    if (!row.seen[j]) continue;
    sums.shares[j] = std::exp(row.biased[j] - row.lse);
    const double* v = head.value_row(static_cast<std::int64_t>(j));
    const double factor = row.factors.empty() ? 1 : row.factors[j];
    for (std::size_t c = 0; c < columns; ++c) {
      const double value = factor * v[c];
      const double magnitude = std::fabs(value);
      spread[c] = std::max(spread[c], std::fabs(value - row.output[c]));
      largest[c] = std::max(largest[c], magnitude);
      absolute[c] += magnitude;
      lowest[c] = std::min(lowest[c], value);
      highest[c] = std::max(highest[c], value);
    }
  }
  if (has_sink) sums.share_of_sink = std::exp(row.sink - row.lse);
  for (std::size_t c = 0; c < columns; ++c) {
    if (has_sink) spread[c] = std::max(spread[c], std::fabs(row.output[c]));
    spread[c] = std::min(spread[c] * std::min(sums.ratio, 2.0), highest[c] - lowest[c]);
  }
  return sums;
}

}  // namespace attest
