#include "reference/softmax/bounds/output_bound.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "reference/softmax/bounds/value_sums.h"
#include "reference/softmax/non_finite.h"

namespace attest {
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

}  // namespace

void bound_output(const Head& head, const Row& row, const RowSums& of_row, const WeightErrors& weights,
                  const ComputedSum& sum, bool weights_overflow, const BoundConstants& c, RowBound& bound,
                  std::int64_t terms_column) {
  const Arithmetic& a = c.arithmetic;
  const auto n = static_cast<double>(row.visible_count) + (row.sink != -kInfinity ? 1 : 0);
  const ColumnSums sums = column_sums(head, row, of_row.ratio, weights);
  const StepSums steps = step_sums(head, row, of_row.ratio, weights, c);
  const double lambda = least_divisor(row, weights, sum, c);
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
      const bool by_class = !value_overflows && !c.steps_values && !c.loses_values &&
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
    // Roundings of the output itself, and the division's where the result's type doesn't have it as its own.
    underflow += c.eta * (a.output_roundings + (c.storing.eta < c.eta ? 1 : 0));
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
