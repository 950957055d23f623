#include "reference/softmax/bounds/weight_errors.h"

#include <algorithm>
#include <cmath>

namespace attest {
namespace {

/// What weights lose that share a step: a share of the largest of their group, and all of it where the step itself may
/// be no normal number.
void add_steps(const Row& row, const RowSums& sums, const BoundConstants& c, WeightErrors& errors) {
  const std::int64_t rows = c.arithmetic.weight_rounding.rows;
  const std::size_t keys = row.seen.size(), group = rows > 0 ? static_cast<std::size_t>(rows) : keys;
  errors.of_storage.assign(keys, 0.0);
  for (std::size_t first = 0; first < keys; first += group) {
    const std::size_t last = std::min(first + group, keys);
    double largest = 0;
    for (std::size_t j = first; j < last; ++j) {
      if (row.seen[j]) largest = std::max(largest, sums.ratio * sums.shares[j] + errors.of_weight[j]);
    }
    const double of_step = c.dynamic_eta * largest + std::min(largest, 0x1p12 * c.smallest_normal);
    for (std::size_t j = first; j < last; ++j) {
      if (row.seen[j]) errors.of_storage[j] = of_step;
    }
  }
}

}  // namespace

WeightErrors weight_errors(const Row& row, const RowSums& sums, const std::vector<ScoreErrors>& scores,
                           const BoundConstants& c, double of_shift_of_row) {
  const Arithmetic& a = c.arithmetic;
  WeightErrors errors;
  errors.shift = of_shift_of_row;
  std::vector<double>& t = errors.of_weight;
  t.assign(row.seen.size(), 0.0);
  double largest_score = 0, of_maximum = 0;
  for (std::size_t j = 0; j < t.size(); ++j) {
    if (!row.seen[j]) continue;
    const double error = scores[j].biased;
    t[j] = error;
    largest_score = std::max(largest_score, error);
    of_maximum = std::max(of_maximum, error - (row.max - row.biased[j]));
  }
  const bool has_sink = row.sink != -kInfinity;
  const double sink_error = has_sink && a.base2 ? c.gamma(2) * std::fabs(row.sink) : 0;
  if (has_sink) of_maximum = std::max(of_maximum, sink_error - (row.max - row.sink));
  const double reference_point = a.no_maximum ? 0 : of_maximum;
  errors.largest_score = largest_score;
  errors.of_maximum = of_maximum;
  errors.reference_point = reference_point;

  const double from_sum = a.sum_of_stored ? c.u_weights / (1 - c.u_weights) : 0;
  const double of_shift = c.shift_roundings * c.u + c.u_argument;
  const double per_key = c.e_exp + c.of_rescaling + 2 * of_shift * a.lazy_threshold + from_sum + c.eta_argument;
  // What a weight is off by besides its relative error, as a share of the row's exact sum: exp's own, and what storing
  // it loses where stored weights are added.
  const double frame = std::exp(reference_point + c.of_rescaling) / (a.no_maximum ? std::exp(row.lse) : row.sum);
  const double of_exp = c.exp_absolute > 0 ? c.exp_absolute * (1 + (a.sum_of_stored ? c.u_weights : 0)) * frame : 0;
  const double of_storage = c.narrows_weights && a.sum_of_stored ? c.eta_weights * frame : 0;
  // The logsumexp of a key's part lies between the key's score and the row's logsumexp, whichever part it is. It is
  // rounded, after a logarithm, and taken out of an exponential; each part passes one exponential for each part.
  const double log_part = std::log(static_cast<double>(row.visible_count) + 1) + a.lazy_threshold;
  const auto in_merge = [&](double score, double score_error) {
    const double largest_lse =
        std::max(std::fabs(score) + score_error, std::fabs(row.lse) + reference_point) + log_part * c.e_log;
    const double below_lse = (row.lse - score) + score_error + reference_point;
    const double conversions = a.base2 ? 2 : a.fused_log2e ? 3 : 0;
    double of_base = conversions * (largest_lse + 2 * log_part);
    if (c.log_factor > 0) of_base += (c.e_log / c.u + 4) * c.log_factor + 2 * std::fabs(row.max);
    return c.e_log * log_part + c.u * (largest_lse + c.shift_roundings * below_lse + of_base) + c.parts * c.e_exp;
  };
  // The product of a maximum and log2(e) is rounded: within a row all have that error in common, but a rescaling takes
  // the exact product for the rounded one.
  const auto in_frames = [&](double score, double score_error) {
    // Summed in this order: a score may be the largest double.
    const double largest = std::max(std::fabs(score), std::fabs(row.max)) + errors.shift;
    return (c.blocks + c.parts) * (c.u * largest + c.u * (score_error + reference_point + a.lazy_threshold));
  };
  const bool merges = c.parts > 0, changes_frames = a.fused_log2e && c.blocks + c.parts > 0;
  const bool limits_argument = c.largest_argument < kInfinity;
  double largest_exponent = 0, highest = -kInfinity, surest = -kInfinity;
  const auto weight_error = [&](double score, double share, double score_error) {
    const double below_max = row.max - score;
    if (below_max == kInfinity)
      return 0.0;  // further below than there are numbers: the weight is 0 whatever the rounding
    // Summed in this order: below_max may be the largest double there is.
    const double shift = a.no_maximum ? std::fabs(score) : below_max;
    double exponent = score_error + of_shift * shift + of_shift * (score_error + reference_point) + per_key;
    if (merges) exponent += in_merge(score, score_error);
    if (changes_frames) exponent += in_frames(score, score_error);
    if (limits_argument) {
      const double furthest = shift + score_error + reference_point + a.lazy_threshold;
      exponent += std::max(0.0, furthest - c.largest_argument);
    }
    // The maximum from which the factor's logarithm is taken is rounded anew in each block.
    if (c.log_factor > 0) {
      exponent +=
          c.u * (1 + std::fabs(score) + errors.shift + below_max + 2 * c.log_factor) + c.u_argument * c.log_factor;
    }
    largest_exponent = std::max(largest_exponent, exponent);
    highest = std::max(highest, score + exponent);
    surest = std::max(surest, score - exponent);
    // The second form lets huge finite masks vanish instead of overflowing.
    return sums.ratio *
           (exponent < 1 ? share * most_exp_minus_1(exponent) : std::exp(score - row.lse + exponent) - share);
  };
  double sum = 0;
  for (std::size_t j = 0; j < t.size(); ++j) {
    if (!row.seen[j]) continue;
    double error = weight_error(row.biased[j], sums.shares[j], t[j]);
    error += of_exp;  // of exp(-inf), too: arguments may be limited
    if (of_storage > 0 && row.biased[j] != -kInfinity) error += of_storage;
    t[j] = error;
    sum += error;
  }
  if (c.dynamic_eta > 0) {
    add_steps(row, sums, c, errors);
    for (std::size_t j = 0; a.sum_of_stored && j < t.size(); ++j) {
      if (row.seen[j] && row.biased[j] != -kInfinity) {
        t[j] += errors.of_storage[j];
        sum += errors.of_storage[j];
      }
    }
  }
  if (has_sink) {
    errors.of_sink = weight_error(row.sink, sums.share_of_sink, sink_error) + of_exp;
    sum += errors.of_sink;
  }
  errors.sum = sum;
  errors.largest_exponent = largest_exponent;
  errors.highest = highest;
  errors.surest = surest;
  return errors;
}

}  // namespace attest
