// How far a biased score typically strays, were all its roundings independent. For the second tier.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "reference/arithmetic/arithmetic.h"
#include "reference/softmax/attention.h"

namespace attest {

/// What the variance of one score owes to its data.
struct ScoreSpread {
  std::size_t j;    ///< the key
  double partials;  ///< scale^2 * sum over the products' partial sums and the products, squared
  double products;  ///< scale^2 * sum over the products, squared
  double queries;   ///< scale^2 * sum over q, squared
  double additive, alibi;
};

/// `products` are q_d * k_jd of the row and key j, `query` is q_d.
ScoreSpread score_spread(const Call& call, const Row& row, std::size_t j, std::span<const double> query,
                         std::span<const double> products);

/// Variances over u^2/3, u that of the accumulator.
struct ScoreVariance {
  double raw;     ///< before the cap and before any store
  double biased;  ///< with all that follows
};
ScoreVariance score_variance(const Call& call, const Row& row, const ScoreSpread& spread, const Arithmetic& arithmetic);

/// What stores of a score of this size in a narrower type add.
double variance_of_stores(const Call& call, double score, const Arithmetic& arithmetic);

}  // namespace attest
