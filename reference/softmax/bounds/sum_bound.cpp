#include "reference/softmax/bounds/sum_bound.h"

#include <algorithm>
#include <cmath>

namespace attest {
namespace {

/// The largest |m| that a step may take weights under: of the row, and of each block by itself.
double largest_maximum(const Row& row, const BoundConstants& c) {
  double largest = std::fabs(row.max);
  if (c.arithmetic.key_block == 0) return largest;
  const auto block = static_cast<std::size_t>(c.arithmetic.key_block);
  for (std::size_t first = 0; first < row.seen.size(); first += block) {
    double highest = -kInfinity;
    for (std::size_t j = first; j < std::min(first + block, row.seen.size()); ++j) {
      if (row.seen[j]) highest = std::max(highest, row.biased[j]);
    }
    if (highest != -kInfinity) largest = std::max(largest, std::fabs(highest));
  }
  return largest;
}

/// Of the logarithm of the sum under the computed maximum, as far as it is not that maximum's error.
double error_of_log_sum(const WeightErrors& weights, double n, const ComputedSum& sum, const BoundConstants& c) {
  // What the sum may lose to underflow where it adds stored weights.
  const bool in_weights = c.narrows_weights || !c.arithmetic.sum_of_stored;  // or nowhere
  const double lost = (in_weights ? 0 : n * c.eta_weights / sum.size) + sum.lost;
  const double from_sum = weights.sum + lost < 1 ? -std::log1p(-weights.sum - lost) : kInfinity;
  const double relative = lost * std::exp(std::min(weights.largest_exponent, 700.0));
  const bool largest_is_all = c.exp_absolute == 0 && !(c.narrows_weights && c.arithmetic.sum_of_stored);
  const double from_largest =
      relative < 1 && largest_is_all ? weights.largest_exponent - std::log1p(-relative) : kInfinity;
  return std::min(from_sum, from_largest) - std::log1p(-std::min(1.0, c.of_weights(n).relative));
}

/// The least that the sum of the weights can be, of which `size` is the exact one.
double least_of_weights(const Row& row, const WeightErrors& weights, double size, const BoundConstants& c) {
  const Arithmetic& a = c.arithmetic;
  // Where nothing coarse happens, what is divided by the sum is so small that the sum's last digits don't matter.
  const bool coarse_scores = c.rounds_scores || c.u_argument > 0 || c.u_scores > 0;
  if (!c.narrows_weights && c.exp_absolute == 0 && !c.own_sums && !coarse_scores) return size;
  double of_all = 0;
  if (c.parts == 0) {
    const double under_maximum = size * std::exp(-weights.reference_point);
    of_all = under_maximum * (1 - weights.sum);
    // Each weight is off by a factor alone, however large.
    const bool by_factors = c.exp_absolute == 0 && !(c.narrows_weights && a.sum_of_stored);
    if (by_factors) of_all = std::max(of_all, under_maximum * std::exp(-weights.largest_exponent));
  }
  if (a.no_maximum) return of_all;
  // A maximum whose product with log2(e) was rounded, or from which a factor's logarithm was taken, isn't its own.
  double of_shift = 0;
  if (c.log_factor > 0) {
    of_shift = c.u * (1 + std::fabs(row.max) + weights.shift + weights.of_maximum + 2 * c.log_factor) +
               c.u_argument * c.log_factor;
  }
  const double largest = size / row.sum - c.e_exp - c.exp_absolute - c.eta_argument - of_shift;
  const double stored = a.sum_of_stored ? largest * (1 - c.u_weights - c.dynamic_eta) - c.eta_weights : largest;
  return std::max(std::exp(-c.of_rescaling) * stored, of_all);
}

}  // namespace

double least_divisor(const Row& row, const WeightErrors& weights, const ComputedSum& sum, const BoundConstants& c) {
  return c.arithmetic.normalised_before_storage ? 1 : least_of_weights(row, weights, sum.size, c);
}

ComputedSum computed_sum(const Row& row, const WeightErrors& weights, double n, const BoundConstants& c) {
  if (!c.arithmetic.no_maximum) {
    // Weights are taken under a maximum whose product with log2(e) was rounded: by this many nats.
    const double frame =
        c.arithmetic.fused_log2e ? 3 * c.u * (largest_maximum(row, c) + weights.shift + weights.reference_point) : 0;
    // exp(m_old - m_new) may underflow when there are weights of up to exp(T) under m_old.
    const double size = row.sum * std::exp(-frame), most = c.lag * std::exp(frame);
    const double least = least_of_weights(row, weights, size, c), lost = c.of_weights(n).lost;
    const double in_sum = lost == 0 ? 0 : lost / least;
    const double factor = c.arithmetic.weight_factor;
    return {size, most * factor, (c.lag > 1 ? c.eta * n * c.lag / row.sum : 0) + in_sum,
            !(frame <= 1) || !(least > 0) || !(n * most * factor <= c.largest_weight_sum) || !(in_sum <= 0x1p-2)};
  }
  const double size = std::exp(row.lse);
  const double heaviest = std::exp(weights.highest) * (1 + c.e_exp) * c.arithmetic.weight_factor;
  const double lightest = std::exp(weights.surest);
  const double lost =
      (c.eta + (c.arithmetic.sum_of_stored ? c.eta_weights : 0)) * n / lightest + c.of_weights(n).lost / lightest;
  const bool too_large = !(heaviest * n <= std::min(c.half_range / 4, c.largest_weight_sum)) ||
                         !(heaviest <= c.largest_weight * c.arithmetic.weight_factor);
  // A reciprocal of less may be an infinity.
  // By a sum of 0, which exponentials of an absolute error may have, nothing can be divided.
  const bool too_small =
      !(lightest >= 4 / c.half_range) || !(lost <= 0x1p-10) || !(least_of_weights(row, weights, size, c) > 0);
  return {size, heaviest, lost, too_large || too_small};
}

double bound_of_lse(const Row& row, const WeightErrors& weights, double n, const ComputedSum& sum,
                    const BoundConstants& c) {
  const Arithmetic& a = c.arithmetic;
  const double log_parts = c.parts > 0 ? std::log(c.parts) : 0;
  // Of the sum under a maximum that lags, and of the parts' weights.
  const double log_sum = std::max(std::fabs(std::log(sum.size)) + a.lazy_threshold, log_parts);
  const double shift = error_of_log_sum(weights, n, sum, c);
  double bound = (shift + c.e_log * (log_sum + weights.reference_point + shift) + c.u * (std::fabs(row.lse) + shift)) *
                 (1 + 4 * c.u);
  // The factor's logarithm is taken out of lse, or of the maximum.
  if (c.log_factor > 0) bound += (c.e_log + 4 * c.u) * c.log_factor + 2 * c.u * (std::fabs(row.max) + weights.shift);
  // The maximum is brought into units of log 2, and back.
  const double conversions = a.base2 ? 2 : a.fused_log2e ? 3 : 0;
  if (conversions > 0) bound += conversions * c.u * (std::fabs(row.max) + weights.shift + a.lazy_threshold + log_sum);
  return bound;
}

void bound_maximum_and_sum(const Row& row, const WeightErrors& weights, double n, const ComputedSum& sum,
                           const BoundConstants& c, RowBound& bound) {
  const Arithmetic& a = c.arithmetic;
  const double conversions = a.base2 ? 2 : a.fused_log2e ? 3 : 0;
  const double largest = std::fabs(row.max) + weights.of_maximum;
  bound.max = c.storing_max.bound(std::fabs(row.max), weights.of_maximum + conversions * c.u * largest);
  const double moved = a.no_maximum ? largest : a.lazy_threshold + (c.parts > 0 ? std::log(c.parts) : 0);
  const double steps = 1 + c.blocks + 2 * c.parts;
  const double frame = a.fused_log2e ? 3 * c.u * (largest_maximum(row, c) + weights.of_maximum) : 0;
  const double of_log = error_of_log_sum(weights, n, sum, c) + weights.of_maximum + frame +
                        steps * (c.e_exp + c.u * (1 + moved + weights.of_maximum)) + conversions * c.u * moved;
  // A factor that brings the sum under this maximum is an exponential of which nothing else is known.
  if (approximates_exp(a) || c.log_factor > 0) {
    if (c.log_factor > 0) bound.max += 3 * c.u * (largest + c.log_factor);
    bound.sum = kInfinity;
    return;
  }
  const double error = of_log < 700 ? row.sum * std::expm1(of_log) + c.eta * (n + steps) : kInfinity;
  bound.sum = c.storing_sum.bound(row.sum, error);
}

}  // namespace attest
