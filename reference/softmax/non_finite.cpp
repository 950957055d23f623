#include "reference/softmax/non_finite.h"

#include <algorithm>
#include <cmath>

namespace attest {
namespace {

/// Products of q and k: the largest finite partial sum, and whether a term isn't finite because an operand isn't.
struct Products {
  double finite = 0;
  bool special = false;
  bool may_be_nan = false;  ///< an infinity meets a number that may be 0 by then
};

/// `least`: an operand below it may be flushed, or underflow when it is scaled. One that was normalised or rotated may
/// be off by a share of its magnitudes.
Products products_of(const std::vector<double>& q, const PreparationCost& of_query, const double* k,
                     const PreparationCost& of_key, double least) {
  const auto may_vanish = [least](double x, const PreparationCost& cost, std::size_t t) {
    if (std::isinf(x)) return false;
    return std::fabs(x) < least || (!cost.empty() && !(std::fabs(x) > kLargestPreparation * cost.magnitudes[t]));
  };
  Products products;
  for (std::size_t t = 0; t < q.size(); ++t) {
    if (std::isfinite(q[t]) && std::isfinite(k[t])) {
      products.finite += std::fabs(q[t] * k[t]);
    } else {
      products.special = true;
      products.may_be_nan |= may_vanish(q[t], of_query, t) || may_vanish(k[t], of_key, t);
    }
  }
  return products;
}

/// Numbers below it may be 0 as an operand of q * k: they are flushed, or scaled before they are multiplied, or the
/// scale itself underflows. Its rounding and that of the product are a few units, for which the factor is enough.
double least_operand(double scale, double eta) {
  return scale < eta ? kInfinity : (1 + 0x1p-20) * eta / std::min(1.0, scale);
}

}  // namespace

NonFiniteScores non_finite_scores(const Head& head, const Row& row, std::int64_t i, double half_range, double eta) {
  NonFiniteScores scores;
  scores.largest_product = row.largest_product;
  const bool seen_by_row = !std::isfinite(row.max) || !std::isfinite(row.largest_product);
  const bool among_hidden = head.call().wants_scores() &&
                            std::any_of(row.raw.begin(), row.raw.end(), [](double x) { return !std::isfinite(x); });
  if (row.visible_count == 0 || (!seen_by_row && !among_hidden)) return scores;

  const std::vector<double> q = head.query_row(i);
  const double scale = row.scale.larger;
  const double least = least_operand(row.scale.least, eta);
  scores.decided.assign(row.seen.size(), 0);
  scores.largest_product = 0;
  bool any_left = false;
  for (std::size_t j = 0; j < row.seen.size(); ++j) {
    const auto key = static_cast<std::int64_t>(j);
    const Products products = products_of(q, row.of_query, head.key_row(key), head.key_cost(key), least);
    scores.decided[j] = products.special && scale * products.finite <= half_range;
    const bool from_products = scores.decided[j] != 0, may_be_nan = products.may_be_nan && std::isinf(row.raw[j]);
    if (may_be_nan) scores.decided[j] = 0;
    if (!row.seen[j]) continue;
    // Behind the cap an infinite score is a number again, and may be NaN where exp overflowed on the way.
    const bool capped = head.call().softcap && !std::isnan(row.raw[j]);
    const bool from_data = (from_products && !capped) || std::isnan(row.bias(j).additive);
    scores.row_is_nan |= from_data && (std::isnan(row.biased[j]) || row.biased[j] == kInfinity);
    const bool gone = from_data && row.biased[j] == -kInfinity;
    any_left |= !gone;
    scores.may_lose_infinity |= gone && may_be_nan;
    if (!gone) scores.largest_product = std::max(scores.largest_product, scale * products.finite);
    if (!from_data && products.special) scores.largest_product = kInfinity;
  }
  scores.hide_all = !any_left && row.sink == -kInfinity;
  return scores;
}

namespace {

/// Whether key j, whose score is -inf, may lie among keys that all are, in a block or part that is then left out as one
/// that sees nothing.
bool may_be_left_out(const Row& row, std::size_t j, const WeightRange& weights) {
  if (weights.in_parts || weights.key_block == 0) return weights.in_parts;
  const auto block = static_cast<std::size_t>(weights.key_block);
  const std::size_t first = j / block * block, last = std::min(row.seen.size(), first + block);
  for (std::size_t other = first; other < last; ++other) {
    if (row.seen[other] && row.biased[other] != -kInfinity) return false;
  }
  return true;
}

}  // namespace

bool decides_output(const Head& head, const Row& row, std::size_t column, double half_range,
                    const WeightRange& weights) {
  double finite = 0;
  bool infinite = false, undecided = false, nan = std::isnan(row.output[column]);
  for (std::size_t j = 0; j < row.seen.size(); ++j) {
    if (!row.seen[j]) continue;
    const double v = head.value_row(static_cast<std::int64_t>(j))[column];
    if (std::isfinite(v)) {
      finite += std::fabs(v) * (row.factors.empty() ? 1 : row.factors[j]);
      continue;
    }
    if (row.biased[j] < weights.least_score && row.biased[j] > -kInfinity) return false;
    if (row.biased[j] == -kInfinity && may_be_left_out(row, j, weights)) return false;
    infinite = true;
    // An infinity times a weight that underflows is NaN, and times another an infinity.
    undecided |= !(row.weights[j] - weights.errors[j] > weights.least_weight);
  }
  return infinite && finite <= half_range && (nan || !undecided);
}

}  // namespace attest
