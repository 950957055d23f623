#include "reference/softmax/non_finite.h"

#include <algorithm>
#include <cmath>

namespace attest {
namespace {

/// Products of q and k: the largest finite partial sum, and whether a term isn't finite because an operand isn't.
struct Products {
  double finite = 0;
  bool special = false;
};

Products products_of(const std::vector<double>& q, const double* k) {
  Products products;
  for (std::size_t t = 0; t < q.size(); ++t) {
    if (std::isfinite(q[t]) && std::isfinite(k[t])) {
      products.finite += std::fabs(q[t] * k[t]);
    } else {
      products.special = true;
    }
  }
  return products;
}

}  // namespace

NonFiniteScores non_finite_scores(const Head& head, const Row& row, std::int64_t i, double half_range) {
  NonFiniteScores scores;
  scores.largest_product = row.largest_product;
  const bool seen_by_row = !std::isfinite(row.max) || !std::isfinite(row.largest_product);
  const bool among_hidden = head.call().wants_scores() &&
                            std::any_of(row.raw.begin(), row.raw.end(), [](double x) { return !std::isfinite(x); });
  if (row.visible_count == 0 || (!seen_by_row && !among_hidden)) return scores;

  const std::vector<double> q = head.query_row(i);
  const double scale = std::max(1.0, std::fabs(head.call().scale_value()));
  scores.decided.assign(row.seen.size(), 0);
  scores.largest_product = 0;
  bool any_left = false;
  for (std::size_t j = 0; j < row.seen.size(); ++j) {
    const auto key = static_cast<std::int64_t>(j);
    const Products products = products_of(q, head.key_row(key));
    scores.decided[j] = products.special && scale * products.finite <= half_range;
    if (!row.seen[j]) continue;
    // Behind the cap an infinite score is a number again, and may be NaN where exp overflowed on the way.
    const bool capped = head.call().softcap && !std::isnan(row.raw[j]);
    const bool from_data = (scores.decided[j] && !capped) || std::isnan(head.bias(i, key).additive);
    scores.row_is_nan |= from_data && (std::isnan(row.biased[j]) || row.biased[j] == kInfinity);
    const bool gone = from_data && row.biased[j] == -kInfinity;
    any_left |= !gone;
    if (!gone) scores.largest_product = std::max(scores.largest_product, scale * products.finite);
    if (!from_data && products.special) scores.largest_product = kInfinity;
  }
  scores.hide_all = !any_left && row.sink == -kInfinity;
  return scores;
}

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
    infinite = true;
    // An infinity times a weight that underflows is NaN, and times another an infinity.
    undecided |= !(row.weights[j] - weights.errors[j] > weights.least_weight);
  }
  return infinite && finite <= half_range && (nan || !undecided);
}

}  // namespace attest
