// The sum of a row's weights as it is computed, and the bounds of what a kernel hands out of it
// (reference/ERROR_BOUNDS.md, "Logsumexp", "Maximum and sum"). `n` is everywhere the number of keys that the row sees,
// its sink included.
#pragma once

#include "reference/softmax/attention.h"
#include "reference/softmax/bounds/bound_constants.h"
#include "reference/softmax/bounds/row_bound.h"
#include "reference/softmax/bounds/weight_errors.h"

namespace attest {

/// The sum of the weights as it is computed.
struct ComputedSum {
  double size;        ///< exactly: under the row's maximum, or under none
  double most;        ///< how large a weight may be while the sum is made, over its size at last
  double lost;        ///< relative, of what underflows on the way into it: more than what its roundings cover
  bool out_of_range;  ///< it may become an infinity, or so small that its weights are lost
};
ComputedSum computed_sum(const Row& row, const WeightErrors& weights, double n, const BoundConstants& c);

/// The least that outputs can be divided by, where that must be known to the last: the largest weight is near 1, and so
/// is the sum under a maximum.
double least_divisor(const Row& row, const WeightErrors& weights, const ComputedSum& sum, const BoundConstants& c);

/// Of the accumulator's logsumexp, before it is stored.
double bound_of_lse(const Row& row, const WeightErrors& weights, double n, const ComputedSum& sum,
                    const BoundConstants& c);

/// Of the maximum and of the sum under it: a maximum that lags, or the sums of parts, are brought under the one that is
/// handed out by one more exponential for each step, and so is a sum under none.
void bound_maximum_and_sum(const Row& row, const WeightErrors& weights, double n, const ComputedSum& sum,
                           const BoundConstants& c, RowBound& bound);

}  // namespace attest
