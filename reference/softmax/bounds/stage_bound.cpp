#include "reference/softmax/bounds/stage_bound.h"

#include <algorithm>
#include <cmath>

#include "reference/softmax/bounds/row_scores.h"
#include "reference/softmax/bounds/sum_bound.h"

namespace attest {

double weight_from_lse(const Row& row, double ratio, std::size_t j, double score_error, double lse_error,
                       const BoundConstants& c) {
  const double own = c.arithmetic.base2 || c.arithmetic.fused_log2e ? 3 : 1;  // lse is brought into units of log 2
  const double below = row.lse - row.biased[j];
  if (below == kInfinity) return c.eta + c.arithmetic.exp_absolute;  // exp(-inf) is 0
  const double frame = own > 1 ? 2 * c.u * (std::fabs(row.lse) + lse_error) : 0;
  double exponent = score_error + lse_error + own * (c.u * below + c.u * (score_error + lse_error)) + frame + c.e_exp;
  if (c.u_argument > 0) {
    const double furthest = below + score_error + lse_error;
    exponent += c.u_argument * furthest + c.eta_argument + std::max(0.0, furthest - c.largest_argument);
  }
  const double off = exponent < 1 ? row.weights[j] * most_exp_minus_1(exponent)
                                  : std::exp(row.biased[j] - row.lse + exponent) - row.weights[j];
  return ratio * off * (1 + 8 * c.u) + c.eta + c.arithmetic.exp_absolute;
}

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
    const bool held = c.hold_codes(row) && !c.loses_scores && (!c.rounds_scores || scores[j].raw < kInfinity);
    const bool decided = held && row.seen[j] && special.decides(j),
               capped = decided && (!c.softcap || std::isnan(row.capped[j]));
    bound.raw[j] = by_class(decided && !c.removes_mean);
    bound.capped[j] = bound.biased[j] = by_class(capped);
    bound.weights[j] = by_class(row.seen[j] && !c.loses_scores && special.weight_is_nan(row, j));
    if (row.abs_products[j] <= c.half_range && !step_may_overflow(row, j, scores[j].raw, c)) {
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

}  // namespace attest
