// Bounds of the scores' stages and of the weights, where a call hands them out (reference/ERROR_BOUNDS.md, "Stages").
#pragma once

#include <cstddef>
#include <vector>

#include "reference/softmax/attention.h"
#include "reference/softmax/bounds/bound_constants.h"
#include "reference/softmax/bounds/row_bound.h"
#include "reference/softmax/bounds/row_scores.h"
#include "reference/softmax/bounds/weight_errors.h"
#include "reference/softmax/non_finite.h"

namespace attest {

/// Sets the lists of `bound`, hidden keys included. `weights`: null where they may be anything but for their class.
/// `ratio`: as in RowSums.
void bound_stages(const Row& row, const std::vector<ScoreErrors>& scores, const BoundConstants& c,
                  const NonFiniteScores& special, double ratio, const WeightErrors* weights, RowBound& bound);

/// How far exp(s_j - lse) may be from the weight of key j, where score and lse are off by these.
double weight_from_lse(const Row& row, double ratio, std::size_t j, double score_error, double lse_error,
                       const BoundConstants& c);

}  // namespace attest
