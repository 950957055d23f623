#include "reference/softmax/bounds/error_bound.h"

#include <algorithm>
#include <cmath>

#include "reference/softmax/bounds/operand_steps.h"
#include "reference/softmax/bounds/output_bound.h"
#include "reference/softmax/bounds/row_scores.h"
#include "reference/softmax/bounds/stage_bound.h"
#include "reference/softmax/bounds/sum_bound.h"
#include "reference/softmax/bounds/weight_errors.h"
#include "reference/softmax/non_finite.h"

namespace attest {
namespace {

/// Whether a visible key whose score is no number may be hidden from a kernel: a mask in a wider type than the
/// accumulator becomes -inf there.
bool may_hide_nan(const Head& head, const Row& row, const BoundConstants& c) {
  const ConstTensor* const mask = head.inputs().mask();
  if (!mask || !is_additive(*mask) || !narrower(c.arithmetic.accumulator, mask->dtype)) return false;
  for (std::size_t j = 0; j < row.seen.size(); ++j) {
    if (!row.seen[j] || std::isfinite(row.biased[j])) continue;
    if (row.bias(j).additive < -c.half_range) return true;
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

/// A row without keys whose sink stands alone: m + log(1), or whatever log gives of a rescaled 1.
void bound_of_sink_alone(const Row& row, const BoundConstants& c, RowBound& bound) {
  const Arithmetic& a = c.arithmetic;
  const double of_log = (c.parts > 0 ? 2 : 1) * c.e_log, of_frame = a.fused_log2e ? 3 * c.u : 0;
  bound.lse = (2 * c.u + c.e_exp * (1 + c.blocks + c.parts) + of_log + of_frame) * (1 + std::fabs(row.sink));
  const double in_range = std::log(c.half_range) - 2;  // of exp, which no maximum keeps near 1
  if (a.no_maximum && !(std::fabs(row.sink) < std::min(in_range, c.largest_argument))) bound.lse = kInfinity;
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

}  // namespace

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
    if (row.sink != -kInfinity) bound_of_sink_alone(row, c, bound);
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
  if (special.row_is_nan && may_hide_nan(head, row, c)) return proves_nothing();
  if (special.row_is_nan) {
    if (c.wants_scores) bound_stages(row, scores, c, special, of_row.ratio, nullptr, bound);
    bound.max = kInfinity;  // kernels differ in whether it sees NaN
    // NaN whatever the arithmetic: the class decides. But under no maximum +inf is a weight, and numbers over it are 0.
    if (c.loses_weights && a.sum_of_stored) bound.lse = bound.sum = kInfinity;
    bool undefined = false;
    for (std::size_t j = 0; j < row.seen.size(); ++j)
      undefined = undefined || (row.seen[j] && std::isnan(row.biased[j]));
    // Weights of NaN that dropout leaves out altogether may be zeros, and those of few bits any number.
    if (all_dropped(row) || c.loses_weights) bound.output.assign(row.output.size(), kInfinity);
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
  bound_output(head, row, of_row, weights, sum, weights_overflow, c, bound, terms_column);
}

}  // namespace attest
