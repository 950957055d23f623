// What a reader wants to see of a query row besides the Row itself: what was added to its scores, and which keys it
// sees. For traces, and for files that hold such stages.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/softmax/attention.h"

namespace attest {

/// What is added to each capped score, mask and ALiBi together; -inf for a key that the row does not see.
std::vector<double> added_scores(const Row& row);

/// 1 for each key that has no part in the row: it is not seen, or its additive mask lies so far below the row's largest
/// that its factor is 0 in float64, as -1e9 does.
std::vector<double> hidden_keys(const Row& row);

/// Scores as they enter the softmax; -inf for a key that the row does not see.
std::vector<double> masked_scores(const Row& row);

}  // namespace attest
