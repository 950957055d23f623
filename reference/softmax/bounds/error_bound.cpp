#include "reference/softmax/bounds/error_bound.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "reference/arithmetic/rounding.h"
#include "reference/softmax/bounds/operand_steps.h"
#include "reference/softmax/bounds/row_scores.h"
#include "reference/softmax/non_finite.h"

namespace attest {
namespace {

/// Relative errors of the computed weights of one row, as far as they differ between keys.
struct WeightErrors {
  std::vector<double> of_weight;   ///< pt_j, absolute, of the exact weight; 0 where hidden
  std::vector<double> of_storage;  ///< what one loses by its step, where groups have one; else empty
  double of_sink = 0;              ///< the same of the sink's share
  double sum = 0;                  ///< W, the sink included
  double largest_exponent = 0;     ///< max t_j
  double of_maximum = 0;           ///< by how much the computed maximum may be off
  double reference_point = 0;      ///< E*: the same of what is subtracted from the scores
  double largest_score = 0;        ///< max E_j
  double highest = -kInfinity;     ///< max s_j + E_j: what the computed maximum is at most
  double surest = -kInfinity;      ///< max s_j - E_j: and at least
  double shift = 0;                ///< by how much scores may lie elsewhere: RowShift
};

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

WeightErrors weight_errors(const Row& row, const RowSums& sums, const std::vector<ScoreErrors>& scores,
                           const BoundConstants& c, double of_shift_of_row = 0) {
  const Arithmetic& a = c.arithmetic;
  WeightErrors errors;
  errors.shift = of_shift_of_row;
  std::vector<double>& t = errors.of_weight;
  t.assign(row.seen.size(), 0.0);
  for (std::size_t j = 0; j < t.size(); ++j) {
    if (!row.seen[j]) continue;
    t[j] = scores[j].biased;
    errors.largest_score = std::max(errors.largest_score, t[j]);
    errors.reference_point = std::max(errors.reference_point, t[j] - (row.max - row.biased[j]));
    errors.highest = std::max(errors.highest, row.biased[j] + t[j]);
    errors.surest = std::max(errors.surest, row.biased[j] - t[j]);
  }
  const bool has_sink = row.sink != -kInfinity;
  const double sink_error = has_sink && a.base2 ? c.gamma(2) * std::fabs(row.sink) : 0;
  if (has_sink) errors.reference_point = std::max(errors.reference_point, sink_error - (row.max - row.sink));
  if (has_sink) errors.highest = std::max(errors.highest, row.sink + sink_error);
  if (has_sink) errors.surest = std::max(errors.surest, row.sink - sink_error);
  errors.of_maximum = errors.reference_point;
  if (a.no_maximum) errors.reference_point = 0;

  const double from_sum = a.sum_of_stored ? c.u_weights / (1 - c.u_weights) : 0;
  const double of_shift = c.shift_roundings * c.u + c.u_argument;
  const double per_key = c.e_exp + c.of_rescaling + 2 * of_shift * a.lazy_threshold + from_sum + c.eta_argument;
  // What a weight is off by besides its relative error, as a share of the row's exact sum: exp's own, and what storing
  // it loses where stored weights are added.
  const double frame = std::exp(errors.reference_point + c.of_rescaling) / (a.no_maximum ? std::exp(row.lse) : row.sum);
  const double of_exp = c.exp_absolute > 0 ? c.exp_absolute * (1 + (a.sum_of_stored ? c.u_weights : 0)) * frame : 0;
  const double of_storage = c.narrows_weights && a.sum_of_stored ? c.eta_weights * frame : 0;
  // The logsumexp of a key's part lies between the key's score and the row's logsumexp, whichever part it is. It is
  // rounded, after a logarithm, and taken out of an exponential; each part passes one exponential for each part.
  const double log_part = std::log(static_cast<double>(row.visible_count) + 1) + a.lazy_threshold;
  const auto in_merge = [&](double score, double score_error) {
    if (c.parts == 0) return 0.0;
    const double largest_lse =
        std::max(std::fabs(score) + score_error, std::fabs(row.lse) + errors.reference_point) + log_part * c.e_log;
    const double below_lse = (row.lse - score) + score_error + errors.reference_point;
    const double conversions = a.base2 ? 2 : a.fused_log2e ? 3 : 0;
    double of_base = conversions * (largest_lse + 2 * log_part);
    if (c.log_factor > 0) of_base += (c.e_log / c.u + 4) * c.log_factor + 2 * std::fabs(row.max);
    return c.e_log * log_part + c.u * (largest_lse + c.shift_roundings * below_lse + of_base) + c.parts * c.e_exp;
  };
  // The product of a maximum and log2(e) is rounded: within a row all have that error in common, but a rescaling takes
  // the exact product for the rounded one.
  const auto in_frames = [&](double score, double score_error) {
    if (!a.fused_log2e || c.blocks + c.parts == 0) return 0.0;
    // Summed in this order: a score may be the largest double.
    const double largest = std::max(std::fabs(score), std::fabs(row.max)) + errors.shift;
    return (c.blocks + c.parts) * (c.u * largest + c.u * (score_error + errors.reference_point + a.lazy_threshold));
  };
  const auto weight_error = [&](double score, double share, double score_error) {
    const double below_max = row.max - score;
    if (below_max == kInfinity)
      return 0.0;  // further below than there are numbers: the weight is 0 whatever the rounding
    // Summed in this order: below_max may be the largest double there is.
    const double shift = a.no_maximum ? std::fabs(score) : below_max;
    double exponent = score_error + of_shift * shift + of_shift * (score_error + errors.reference_point) + per_key +
                      in_merge(score, score_error) + in_frames(score, score_error);
    // The maximum from which the factor's logarithm is taken is rounded anew in each block.
    if (c.log_factor > 0) {
      exponent +=
          c.u * (1 + std::fabs(score) + errors.shift + below_max + 2 * c.log_factor) + c.u_argument * c.log_factor;
    }
    errors.largest_exponent = std::max(errors.largest_exponent, exponent);
    // The second form lets huge finite masks vanish instead of overflowing.
    return sums.ratio * (exponent < 1 ? share * std::expm1(exponent) : std::exp(score - row.lse + exponent) - share);
  };
  for (std::size_t j = 0; j < t.size(); ++j) {
    if (!row.seen[j]) continue;
    t[j] = weight_error(row.biased[j], sums.shares[j], t[j]);
    if (of_exp + of_storage > 0 && row.biased[j] != -kInfinity) t[j] += of_exp + of_storage;
    errors.sum += t[j];
  }
  if (c.dynamic_eta > 0) {
    add_steps(row, sums, c, errors);
    for (std::size_t j = 0; a.sum_of_stored && j < t.size(); ++j) {
      if (row.seen[j] && row.biased[j] != -kInfinity) {
        t[j] += errors.of_storage[j];
        errors.sum += errors.of_storage[j];
      }
    }
  }
  if (has_sink) {
    errors.of_sink = weight_error(row.sink, sums.share_of_sink, sink_error) + of_exp;
    errors.sum += errors.of_sink;
  }
  return errors;
}

/// Sums over the visible keys that the errors of the weights enter, a list of columns of the output for each: loops
/// over columns are done in vectors.
struct ColumnSums {
  std::vector<double> centred;   ///< sum pt_j * |v_jc - o_c|
  std::vector<double> weighted;  ///< sum (p_j + pt_j) * |v_jc|
};

/// Likewise of steps of their own, those of values and those of weights; empty without.
struct StepSums {
  std::vector<double> of_values;   ///< sum (p_j + pt_j) * h_jc
  std::vector<double> largest;     ///< max h_jc
  std::vector<double> of_weights;  ///< sum z_j * |v_jc|
  double weights = 0;              ///< sum z_j
  double largest_unit = 1;         ///< the largest finite step of a value, or 1
  double in_steps = 0;             ///< the largest |v_jc| in units of its step
};

StepSums step_sums(const Head& head, const Row& row, double ratio, const WeightErrors& errors,
                   const BoundConstants& c) {
  StepSums sums;
  const std::size_t columns = row.output.size();
  const bool weights = !errors.of_storage.empty() && !c.arithmetic.sum_of_stored;
  if (!weights && !c.steps_values) return sums;
  sums.of_values.assign(columns, 0);
  sums.largest.assign(columns, 0);
  sums.of_weights.assign(columns, 0);
  const StepTable table = steps_of_values(head, row, c);
  // Normalised, none is more than 1.
  const double shrunk = errors.sum < 1 ? 1 / (1 - errors.sum) : kInfinity;
  for (std::size_t j = 0; j < row.seen.size(); ++j) {
    if (!row.seen[j]) continue;
    const double* v = head.value_row(static_cast<std::int64_t>(j));
    const double heaviest = std::min(shrunk, 0x1p500) * (ratio * row.weights[j] + errors.of_weight[j]);
    const double factor = row.factors.empty() ? 1 : row.factors[j];
    const double z =
        weights ? std::min(std::min(shrunk, 0x1p500) * errors.of_storage[j], c.dynamic_eta + 0x1p12 * c.smallest_normal)
                : 0;
    sums.weights += z;
    for (std::size_t n = 0; n < columns; ++n) {
      if (c.steps_values) {
        const double lost = factor == 0 && table.lost(j, n) < kInfinity ? 0 : factor * table.lost(j, n);
        // 0 times what nobody knows isn't known.
        sums.of_values[n] += lost < kInfinity ? heaviest * lost : kInfinity;
        const double unit = table.step(j, n);
        if (unit < kInfinity) sums.largest_unit = std::max(sums.largest_unit, unit);
        if (unit > 0)
          sums.in_steps = std::max(sums.in_steps, factor * ((1 + c.value.u) * std::fabs(v[n]) / unit + c.value.eta));
        sums.largest[n] = std::isnan(lost) ? kInfinity : std::max(sums.largest[n], lost);
      }
      if (weights) sums.of_weights[n] += z * factor * std::fabs(v[n]);
    }
  }
  return sums;
}

ColumnSums column_sums(const Head& head, const Row& row, double ratio, const WeightErrors& errors) {
  const std::size_t columns = row.output.size();
  ColumnSums lists{std::vector<double>(columns), std::vector<double>(columns)};
  // They don't overlap, which the compiler can't see.
  double* __restrict centred = lists.centred.data();
  double* __restrict weighted = lists.weighted.data();
  for (std::size_t j = 0; j < row.seen.size(); ++j) {
    if (!row.seen[j]) continue;
    const double* v = head.value_row(static_cast<std::int64_t>(j));
    const double off = errors.of_weight[j], heaviest = ratio * row.weights[j] + off;
    const double factor = row.factors.empty() ? 1 : row.factors[j];
    for (std::size_t c = 0; c < columns; ++c) {
      const double value = factor * v[c];
      centred[c] += off * std::fabs(value - row.output[c]);
      weighted[c] += heaviest * std::fabs(value);
    }
  }
  for (std::size_t c = 0; row.sink != -kInfinity && c < columns; ++c) {
    centred[c] += errors.of_sink * std::fabs(row.output[c]);
  }
  return lists;
}

}  // namespace

namespace {

/// The largest finite |v| of the head, hidden keys included: 0 times an infinity that it is rounded to is none of their
/// numbers. Infinite values themselves are left to their class.
double largest_value(const Head& head, const Row& row) {
  double largest = 0;
  for (std::size_t j = 0; j < row.seen.size(); ++j) {
    const double* v = head.value_row(static_cast<std::int64_t>(j));
    for (std::size_t c = 0; c < row.output.size(); ++c) {
      if (std::isfinite(v[c])) largest = std::max(largest, std::fabs(v[c]));
    }
  }
  return largest;
}

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

/// The sum of the weights as it is computed.
struct ComputedSum {
  double size;        ///< exactly: under the row's maximum, or under none
  double most;        ///< how large a weight may be while the sum is made, over its size at last
  double lost;        ///< relative, of what underflows on the way into it: more than what its roundings cover
  bool out_of_range;  ///< it may become an infinity, or so small that its weights are lost
};
ComputedSum computed_sum(const Row& row, const WeightErrors& weights, double n, const BoundConstants& c) {
  if (!c.arithmetic.no_maximum) {
    // Weights are taken under a maximum whose product with log2(e) was rounded: by this many nats.
    const double frame =
        c.arithmetic.fused_log2e ? 3 * c.u * (largest_maximum(row, c) + weights.shift + weights.reference_point) : 0;
    // exp(m_old - m_new) may underflow when there are weights of up to exp(T) under m_old.
    const double size = row.sum * std::exp(-frame), most = c.lag * std::exp(frame),
                 in_sum = c.of_weights(n).lost / size;
    const double factor = c.arithmetic.weight_factor;
    return {size, most * factor, (c.lag > 1 ? c.eta * n * c.lag / row.sum : 0) + in_sum,
            !(frame <= 1) || !(n * most * factor <= c.largest_weight_sum) || !(in_sum <= 0x1p-2)};
  }
  const double size = std::exp(row.lse);
  const double heaviest = std::exp(weights.highest) * (1 + c.e_exp) * c.arithmetic.weight_factor;
  const double lightest = std::exp(weights.surest);
  const double lost =
      (c.eta + (c.arithmetic.sum_of_stored ? c.eta_weights : 0)) * n / lightest + c.of_weights(n).lost / lightest;
  const bool too_large = !(heaviest * n <= std::min(c.half_range / 4, c.largest_weight_sum)) ||
                         !(heaviest <= c.largest_weight * c.arithmetic.weight_factor);
  // A reciprocal of less may be an infinity.
  const bool too_small = !(lightest >= 4 / c.half_range) || !(lost <= 0x1p-10);
  return {size, heaviest, lost, too_large || too_small};
}

/// The least that a sum by which outputs are divided can be, where that must be known to the last: the largest weight
/// is near 1, and so is the sum under a maximum.
double least_sum(const Row& row, const WeightErrors& weights, const ComputedSum& sum, const BoundConstants& c) {
  const Arithmetic& a = c.arithmetic;
  if (a.normalised_before_storage) return 1;
  if (!c.narrows_weights && c.exp_absolute == 0) return sum.size;
  const double of_all = c.parts > 0 ? 0 : sum.size * std::exp(-weights.reference_point) * (1 - weights.sum);
  if (a.no_maximum) return of_all;
  // A maximum whose product with log2(e) was rounded, or from which a factor's logarithm was taken, isn't its own.
  double of_shift = 0;
  if (c.log_factor > 0) {
    of_shift = c.u * (1 + std::fabs(row.max) + weights.shift + weights.of_maximum + 2 * c.log_factor) +
               c.u_argument * c.log_factor;
  }
  const double largest = sum.size / row.sum - c.e_exp - c.exp_absolute - c.eta_argument - of_shift;
  const double stored = a.sum_of_stored ? largest * (1 - c.u_weights - c.dynamic_eta) - c.eta_weights : largest;
  return std::max(std::exp(-c.of_rescaling) * stored, of_all);
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

/// Of the accumulator's logsumexp, before it is stored.
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

/// Of the maximum and of the sum under it: a maximum that lags, or the sums of parts, are brought under the one that is
/// handed out by one more exponential for each step, and so is a sum under none.
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

/// Bounds of the scores' stages, hidden keys included, and of the weights. `ratio`: as in RowSums.
void bound_stages(const Row& row, const std::vector<ScoreErrors>& scores, const BoundConstants& c,
                  const NonFiniteScores& special, double ratio, const WeightErrors* weights, RowBound& bound) {
  const std::size_t keys = row.seen.size();
  const auto n = static_cast<double>(row.visible_count) + (c.has_sinks ? 1 : 0);
  for (auto* list : {&bound.raw, &bound.capped, &bound.biased, &bound.weights}) list->resize(keys);
  const double product_relative = c.both(c.gamma(n + c.blocks + c.division_roundings), c.u_weights);
  const bool own_sum = c.arithmetic.weight_sum != Sum();
  const double division_relative = own_sum ? c.both(c.of_weights(n).relative, c.gamma(c.division_roundings))
                                           : c.gamma(n + c.blocks) + c.division_roundings * c.u;
  const ComputedSum sum = weights ? computed_sum(row, *weights, n, c) : ComputedSum{1, 1, 0, false};
  // As for the output: a rescaling that underflows loses eta of weights up to exp(T), a sum of stored weights what they
  // lost in storage.
  const double shrunk = c.lag > 1 ? c.eta * (c.lag - 1) / sum.size : 0;
  const double underflow = (c.eta * (2 + n + c.blocks) + c.eta_weights) / std::min(1.0, sum.size) + shrunk;
  // Else it is in sum.lost, or in the weights' own errors.
  const bool adds_stored = c.arithmetic.sum_of_stored && !c.arithmetic.no_maximum && !c.narrows_weights;
  const double in_sum = adds_stored ? n * c.eta_weights / sum.size : 0;
  const double second_order = 1 + 2 * c.gamma(n + c.blocks + c.key_dim + 4);
  for (std::size_t j = 0; j < keys; ++j) {
    // Visible data that aren't finite decide the class; at a hidden key nothing is promised about the score.
    const auto by_class = [](bool decided) { return decided ? 0 : kInfinity; };
    // Where an operand may become an infinity, no class of theirs does.
    const bool held = c.hold_codes(row) && (!c.rounds_scores || scores[j].raw < kInfinity);
    const bool decided = held && row.seen[j] && special.decides(j),
               capped = decided && (!c.softcap || std::isnan(row.capped[j]));
    bound.raw[j] = by_class(decided && !c.removes_mean);
    bound.capped[j] = bound.biased[j] = by_class(capped);
    bound.weights[j] = by_class(row.seen[j] && special.weight_is_nan(row, j));
    if (row.abs_products[j] <= c.half_range && std::fabs(row.raw[j]) <= c.largest_step) {
      const ScoreErrors& errors = scores[j];
      bound.raw[j] = c.storing_raw.bound(std::fabs(row.raw[j]), errors.raw);
      bound.capped[j] = c.storing_capped.bound(std::fabs(row.capped[j]), errors.capped);
      const bool in_range = std::fabs(row.biased[j]) + errors.biased <= c.largest_score;
      bound.biased[j] = in_range ? c.storing_biased.bound(std::fabs(row.biased[j]), errors.biased) : kInfinity;
    }
    if (c.removes_mean) bound.raw[j] = bound.capped[j] = bound.biased[j] = kInfinity;  // of other keys
    if (!row.seen[j]) {
      bound.biased[j] = bound.weights[j] = 0;  // -inf and 0, exactly
      continue;
    }
    if (!weights || std::isnan(row.weights[j])) continue;
    const double w = row.weights[j], off = weights->of_weight[j], total = weights->sum;
    if (c.arithmetic.weights_from_lse) {
      bound.weights[j] = c.storing_weights.bound(w, weight_from_lse(row, ratio, j, scores[j].biased, bound.lse, c));
      continue;
    }
    // The output's bound with V the identity.
    const double larger = std::min(1.0, ratio * std::max(w, 1 - w)), off_centre = (ratio - 1) * larger;
    const double from_weights = off * (1 - w) + (total - off) * w + total * off_centre;
    const double centred = total < 1 ? std::min(from_weights / (1 - total), larger) : larger;
    const double product = product_relative * (total < 1 ? std::min((ratio * w + off) / (1 - total), 1.0) : 1);
    const double in_two_passes = !two_passes(c.arithmetic) ? 0 : total < 1 ? 2 * total / (1 - total) * w : kInfinity;
    const double division = division_relative * w + in_two_passes + (in_sum + sum.lost * (1 + 2 * sum.lost)) * w;
    double error = second_order * (centred + product + division + underflow);
    if (!weights->of_storage.empty()) error += total < 1 ? 2 * weights->of_storage[j] / (1 - total) : kInfinity;
    if (own_sum) error *= 1 + division_relative;
    bound.weights[j] = division_relative < kInfinity ? c.storing_weights.bound(w, error) : kInfinity;
  }
}

/// Whether a visible key whose score is no number may be hidden from a kernel: a mask in a wider type than the
/// accumulator becomes -inf there.
bool may_hide_nan(const Head& head, const Row& row, std::int64_t i, const BoundConstants& c) {
  const ConstTensor* const mask = head.inputs().mask();
  if (!mask || !is_additive(*mask) || !narrower(c.arithmetic.accumulator, mask->dtype)) return false;
  for (std::size_t j = 0; j < row.seen.size(); ++j) {
    if (!row.seen[j] || std::isfinite(row.biased[j])) continue;
    if (head.bias(i, static_cast<std::int64_t>(j)).additive < -c.half_range) return true;
  }
  return false;
}

/// Whether dropout leaves out every key that the row sees.
bool all_dropped(const Row& row) {
  if (row.factors.empty()) return false;
  for (std::size_t j = 0; j < row.seen.size(); ++j) {
    if (row.seen[j] && row.factors[j] != 0) return false;
  }
  return true;
}

}  // namespace

double weight_from_lse(const Row& row, double ratio, std::size_t j, double score_error, double lse_error,
                       const BoundConstants& c) {
  const double own = c.arithmetic.base2 || c.arithmetic.fused_log2e ? 3 : 1;  // lse is brought into units of log 2
  const double below = row.lse - row.biased[j];
  if (below == kInfinity) return c.eta;  // exp(-inf) is 0
  const double frame = own > 1 ? 2 * c.u * (std::fabs(row.lse) + lse_error) : 0;
  double exponent = score_error + lse_error + own * (c.u * below + c.u * (score_error + lse_error)) + frame + c.e_exp;
  if (c.u_argument > 0) exponent += c.u_argument * (below + score_error + lse_error) + c.eta_argument;
  const double off = exponent < 1 ? row.weights[j] * std::expm1(exponent)
                                  : std::exp(row.biased[j] - row.lse + exponent) - row.weights[j];
  return ratio * off * (1 + 8 * c.u) + c.eta + c.arithmetic.exp_absolute;
}

void bound_row(const Head& head, const Row& row, std::int64_t i, const Producer& producer, RowBound& bound,
               std::int64_t terms_column) {
  bound_row(head, row, row_sums(head, row, i), i, BoundConstants(head.call(), producer), bound, terms_column);
}

void bound_row(const Head& head, const Row& row, const RowSums& of_row, std::int64_t i, const BoundConstants& c,
               RowBound& bound, std::int64_t terms_column) {
  bound.output.assign(row.output.size(), 0.0);
  bound.lse = bound.max = bound.sum = 0;
  bound.terms = {};
  const Arithmetic& a = c.arithmetic;
  const NonFiniteScores special =
      non_finite_scores(head, row, i, c.half_range / row.code_scales.ratio(),
                        std::max({c.eta, c.query.eta, c.key.eta}) * row.code_scales.ratio());
  std::vector<ScoreErrors> own;
  if (!c.of_reference) own = score_errors(head, row, i, c);
  const std::vector<ScoreErrors>& scores = c.of_reference ? of_row.reference_errors : own;
  const RowShift shift = row_shift(head, row, i, c);
  if (row.visible_count == 0) {
    // The sink stands alone: m + log(1), or whatever log gives of a rescaled 1.
    if (row.sink != -kInfinity) {
      const double of_log = (c.parts > 0 ? 2 : 1) * c.e_log, of_frame = a.fused_log2e ? 3 * c.u : 0;
      bound.lse = (2 * c.u + c.e_exp * (1 + c.blocks + c.parts) + of_log + of_frame) * (1 + std::fabs(row.sink));
      const double in_range = std::log(c.half_range) - 2;  // of exp, which no maximum keeps near 1
      if (a.no_maximum && !(std::fabs(row.sink) < in_range)) bound.lse = kInfinity;
      if (approximates_exp(a) || c.log_factor > 0) {
        const double of_weight = c.exp_absolute + c.eta_argument + c.of_rescaling + (c.u + c.u_argument) * c.log_factor;
        bound.lse += of_weight < 0.25 ? 2 * of_weight : kInfinity;
        bound.lse += (c.e_log + 4 * c.u) * c.log_factor + 3 * c.u * std::fabs(row.sink);
        if (a.no_maximum) bound.lse += 2 * c.u_argument * (1 + std::fabs(row.sink));
      }
      if (c.storing_lse.u > 0) bound.lse = c.storing_lse.bound(std::fabs(row.sink), bound.lse);
      const double size = std::fabs(row.sink), in_base = a.base2 ? 2 : a.fused_log2e ? 3 : 0;
      bound.max = c.storing_max.bound(size, in_base * c.u * size);
      const double of_exp = (1 + c.blocks + 2 * c.parts) * (c.e_exp + c.u) + of_frame * (1 + size);
      const double of_sum = a.no_maximum ? std::expm1(2 * (of_exp + c.u * (1 + size))) : std::expm1(of_exp);
      const bool unknown = bound.lse == kInfinity || approximates_exp(a) || c.log_factor > 0;
      bound.sum = unknown ? kInfinity : c.storing_sum.bound(1, of_sum);
    }
    if (c.wants_scores) bound_stages(row, scores, c, special, of_row.ratio, nullptr, bound);
    return;
  }

  const auto proves_nothing = [&] {
    bound.output.assign(row.output.size(), kInfinity);
    bound.lse = bound.max = bound.sum = kInfinity;
    if (c.wants_scores) bound_stages(row, scores, c, special, of_row.ratio, nullptr, bound);
  };
  if (steps_prove_nothing(head, row, scores, c)) {
    proves_nothing();
    if (c.wants_scores) std::fill(bound.weights.begin(), bound.weights.end(), kInfinity);
    return;
  }
  if (operands_may_overflow(head, row, c) || !c.hold_codes(row) || !c.holds(head.value_scales()))
    return proves_nothing();
  if (special.row_is_nan && may_hide_nan(head, row, i, c)) return proves_nothing();
  if (special.row_is_nan) {
    if (c.wants_scores) bound_stages(row, scores, c, special, of_row.ratio, nullptr, bound);
    bound.max = kInfinity;  // kernels differ in whether it sees NaN
    // NaN whatever the arithmetic: the class decides. But under no maximum +inf is a weight, and numbers over it are 0.
    bool undefined = false;
    for (std::size_t j = 0; j < row.seen.size(); ++j)
      undefined = undefined || (row.seen[j] && std::isnan(row.biased[j]));
    // Weights of NaN that dropout leaves out altogether may be zeros.
    if (all_dropped(row)) bound.output.assign(row.output.size(), kInfinity);
    if (a.no_maximum && !undefined) {
      bound.lse = bound.sum = kInfinity;
      bound.output.assign(row.output.size(), kInfinity);
      for (std::size_t j = 0; c.wants_scores && j < row.seen.size(); ++j) {
        if (row.seen[j]) bound.weights[j] = kInfinity;
      }
    }
    return;
  }
  if (scores_may_overflow(row, scores, special, c)) return proves_nothing();
  const WeightErrors weights = weight_errors(row, of_row, scores, c, shift.magnitude);
  const auto n = static_cast<double>(row.visible_count) + (row.sink != -kInfinity ? 1 : 0);
  const ComputedSum sum = computed_sum(row, weights, n, c);
  // Weights beyond 1 are those of a maximum that lags; a sum of such as are stored overflows with them.
  const bool weights_overflow =
      (c.lag > 1 && c.lag * (1 + c.e_exp) * n > (c.u_weights > 0 ? c.largest_weight * n : c.half_range)) ||
      (c.narrows_weights && !a.no_maximum && !(c.lag * (1 + c.e_exp + c.exp_absolute) <= c.largest_weight));
  // How exp merges results of parts isn't stated by an absolute error or an argument of its own.
  if (c.parts > 0 && (c.exp_absolute > 0 || c.u_argument > 0)) return proves_nothing();
  // Nor how a step of weights is found that have no maximum.
  if (c.dynamic_eta > 0 && (a.no_maximum || c.parts > 0)) return proves_nothing();
  if (sum.out_of_range || (a.sum_of_stored && weights_overflow)) return proves_nothing();
  bound.lse = bound_of_lse(row, weights, n, sum, c) + shift.of_lse;
  bound_maximum_and_sum(row, weights, n, sum, c, bound);
  if (c.removes_mean) bound.max = kInfinity;
  if (c.wants_scores) bound_stages(row, scores, c, special, of_row.ratio, &weights, bound);
  if (c.storing_lse.u > 0) bound.lse = c.storing_lse.bound(std::fabs(row.lse), bound.lse);
  const ColumnSums sums = column_sums(head, row, of_row.ratio, weights);
  const StepSums steps = step_sums(head, row, of_row.ratio, weights, c);
  const double lambda = least_sum(row, weights, sum, c);
  const double in_product = (a.normalised_before_storage ? c.division_roundings : 0) + (row.factors.empty() ? 0 : 4);
  // The factor of weights goes into the divisor, or is divided by alone where they are divided by their sum before.
  const double of_factor = c.log_factor > 0 ? (a.normalised_before_storage ? c.division_roundings : 1) : 0;
  const double after_product =
      (a.normalised_before_storage ? 0 : c.division_roundings) + a.output_roundings + of_factor;
  const double u_weights = a.sum_of_stored ? 0 : c.u_weights;
  const bool convex_only = !(weights.sum < 1);
  // What one that shrinks may lose more than once, of the values that it weighs.
  const double shrunk = c.lag > 1 ? c.eta * (c.lag - 1) / sum.size : 0;
  // Weights that are divided before they are stored exist only when the online sum is complete: they are computed once
  // more, with errors that no longer cancel against those in the sum.
  const double in_two_passes = !two_passes(a) || convex_only ? 0 : 2 * weights.sum / (1 - weights.sum);
  double kept = 1;  // sum p_j * r_j, r_j the dropout factor
  if (!row.factors.empty()) kept = std::inner_product(row.weights.begin(), row.weights.end(), row.factors.begin(), 0.0);

  // A part's result is divided, weighed, added, and shrunk with what was added before.
  const double in_merge = c.parts > 0 ? 2 * c.parts + 1 + c.division_roundings : 0;
  const double of_operands = c.both(u_weights, c.value.u);
  const SumCost of_products = c.of_values(n, in_product + in_merge + c.value_roundings);
  const double product_relative = c.both(of_products.relative, c.both(of_operands, c.u_parts));
  // Weights may have the scale of their key's value, sums that of a head's, or values their own.
  const ScaleRange& scales = head.value_scales();
  const double step_of_values = c.steps_values ? a.value_rounding.step : 1;
  const bool value_overflows =
      (c.rounds_values && step_of_values > 0 &&
       !(largest_value(head, row) * scales.ratio() <= c.value.largest * step_of_values)) ||
      (c.value_roundings > 0 && !(sum.most * scales.largest * (1 + 0x1p-6) <= c.largest_weight));
  // A weight's factor of dropout is a value's, and multiplies what the value loses.
  double largest_factor = 1;
  for (const double factor : row.factors) largest_factor = std::max(largest_factor, factor);
  // Each value may lose eta; weights add up to 1, after whatever rounding, and each may lose its own.
  const double of_steps = (1 + product_relative) * (1 + (c.eta + c.eta_weights) * n / lambda + steps.weights);
  // Sums of products may be in units of the steps of both.
  const double most_in_steps = c.dynamic_eta > 0 ? std::max(sum.most, c.largest_weight_in_steps) : sum.most;
  const double of_values = c.value.eta * scales.ratio() * largest_factor * (1 + product_relative) *
                           (1 + (c.eta + c.eta_weights) * n / lambda);
  const double division_relative = c.of_weights(n).relative + after_product * c.u + in_two_passes;
  const double second_order = 1 + 2 * c.gamma(n + c.blocks + c.key_dim + 4 + a.output_roundings);
  const bool sums_prove_nothing = !(product_relative + division_relative < kInfinity) || !(lambda > 0);
  // What weights of 8 bits lose is no small thing beside them; where stored ones are added, they have it themselves.
  const double of_narrow = a.sum_of_stored ? 0 : (1 + c.both(of_products.relative, c.u_parts)) * c.eta_weights / lambda;
  for (std::size_t column = 0; column < row.output.size(); ++column) {
    if (!std::isfinite(row.output[column])) {
      // A score within half a unit of the largest number rounds to that.
      const WeightRange range{
          -c.largest_score * (1 + c.u / 2),
          4 * std::max({c.eta, c.eta_weights, c.dynamic_eta}) * c.lag * scales.ratio() / std::min(1.0, sum.size),
          weights.of_weight, a.key_block, c.parts > 0};
      const bool by_class = !value_overflows && !c.steps_values &&
                            decides_output(head, row, column, c.largest_value_sum / scales.ratio(), range);
      bound.output[column] = by_class ? 0 : kInfinity;
      continue;
    }
    const double magnitude = std::fabs(row.output[column]);
    const double off_centre = (of_row.ratio - 1) * of_row.spread[column];  // of the reference's output
    // Outputs are convex combinations of the values: however wrong the weights, o stays among them.
    const double centred = convex_only ? of_row.spread[column]
                                       : std::min((sums.centred[column] + weights.sum * off_centre) / (1 - weights.sum),
                                                  of_row.spread[column]);
    const double weighted = convex_only ? of_row.largest[column]
                                        : std::min(sums.weighted[column] / (1 - weights.sum), of_row.largest[column]);
    const double products = product_relative * weighted;
    double division = division_relative * magnitude;
    const double in_sum = a.sum_of_stored ? n * magnitude : 0;
    const double of_storage = c.narrows_weights ? of_narrow * of_row.absolute[column]
                                                : c.eta_weights * (of_row.absolute[column] + in_sum) / lambda;
    double underflow = c.eta * of_row.absolute[column] / sum.size + of_storage + c.eta * (n + c.blocks) / lambda;
    underflow += shrunk * of_row.absolute[column] + sum.lost * (1 + 2 * sum.lost) * magnitude;
    if (a.flush_to_zero) underflow += c.eta * kept;  // flushed values
    if (c.parts > 0) underflow += c.parts * c.eta * (4 + 2 * of_row.largest[column]) + c.eta_parts;
    underflow *= scales.ratio();
    if (!steps.of_weights.empty()) {
      underflow += (1 + c.both(of_products.relative, c.u_parts)) * (1 + division_relative) * steps.of_weights[column] *
                   scales.ratio();
    }
    if (c.steps_values) {
      const double lost =
          convex_only ? steps.largest[column] : std::min(steps.of_values[column], steps.largest[column]);
      underflow = underflow * (1 + c.value.u) + lost * scales.ratio() * of_steps;
    } else if (c.rounds_values) {
      underflow = underflow * (1 + c.value.u) + of_values;
    }
    if (c.own_sums) {
      underflow =
          (underflow + of_products.lost * steps.largest_unit * scales.ratio() / lambda) * (1 + product_relative);
      division += division_relative * (centred + products + underflow);
    }
    const double before = second_order * (centred + products + division + underflow);
    const bool may_overflow =
        !(n * of_row.largest[column] * sum.most * scales.ratio() <= c.largest_value_sum) || weights_overflow ||
        (c.steps_values && !(n * std::max(of_row.largest[column] + steps.largest[column], steps.in_steps) *
                                 most_in_steps * scales.ratio() <=
                             c.largest_value_sum)) ||
        (c.dynamic_eta > 0 && !(n * of_row.largest[column] * most_in_steps * scales.ratio() <= c.largest_value_sum));
    const bool part_may_overflow =
        c.parts > 0 && !(of_row.largest[column] * scales.ratio() <= c.largest_part * (1 - 0x1p-10));
    const bool unbounded =
        value_overflows || may_overflow || part_may_overflow || sums_prove_nothing || (two_passes(a) && convex_only);
    bound.output[column] = unbounded ? kInfinity : c.storing.bound(magnitude, before);
    if (static_cast<std::int64_t>(column) == terms_column) {
      bound.terms = {weights.largest_score,
                     weights.sum,
                     centred,
                     products,
                     division,
                     underflow,
                     c.storing.u * (magnitude + before) + c.storing.eta};
    }
  }
}

}  // namespace attest
