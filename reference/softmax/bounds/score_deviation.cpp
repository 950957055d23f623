#include "reference/softmax/bounds/score_deviation.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "reference/arithmetic/rounding.h"
#include "reference/softmax/bounds/partial_sums.h"

namespace attest {

ScoreSpread score_spread(const Call& p, const Row& row, std::size_t j, std::span<const double> query,
                         std::span<const double> products) {
  const PartialSums sums(products);
  const double partials = std::inner_product(products.begin(), products.end(), products.begin(), sums.squares);
  const double squares = std::inner_product(products.begin(), products.end(), products.begin(), 0.0);
  const double of_query = std::inner_product(query.begin(), query.end(), query.begin(), 0.0);
  const double of_scale = square(p.scale_value());
  const ScoreBias bias = row.bias(j);
  return {j, of_scale * partials, of_scale * squares, of_scale * of_query, bias.additive, bias.alibi};
}

ScoreVariance score_variance(const Call& p, const Row& row, const ScoreSpread& spread, const Arithmetic& a) {
  const double raw = row.raw[spread.j], capped = row.capped[spread.j], biased = row.biased[spread.j];
  double of_raw = spread.partials + scale_roundings(a) * raw * raw;
  // A query's own rounding is common to all keys: RowDeviation adds it.
  if (const FormatRounding key = rounding_of(a.key_operand, a.flush_to_zero); key.u > 0) {
    const double u = unit_roundoff(a.accumulator);
    of_raw += square(key.u / u) * spread.products + square(key.eta / u) * spread.queries;
  }
  double variance = of_raw;
  if (p.softcap) {
    const double slope = 1 - square(std::tanh(raw / *p.softcap));
    variance = slope * slope * (variance + raw * raw) + (square(2 * a.tanh_ulps) + (a.base2 ? 3 : 1)) * square(capped);
  }
  const double added = std::fabs(spread.additive) + std::fabs(spread.alibi);
  if (spread.additive != 0) variance += biased * biased;
  if (spread.alibi != 0) variance += square(std::fabs(capped) + added) + square(spread.alibi);
  if (a.base2) variance += 2 * added * added;
  variance += variance_of_stores(p, std::max(std::fabs(capped), std::fabs(biased)), a);
  return {of_raw, variance};
}

double variance_of_stores(const Call& p, double score, const Arithmetic& a) {
  if (!narrower(a.stored_scores, a.accumulator)) return 0;
  const double u = unit_roundoff(a.accumulator);
  // Of scores so small that their type holds few bits of them.
  const double eta = std::max(1.0, std::fabs(p.scale_value())) * underflow_unit(a.stored_scores, a.flush_to_zero);
  return a.score_stores * (square(unit_roundoff(a.stored_scores) / u * score) + square(eta / u));
}

}  // namespace attest
