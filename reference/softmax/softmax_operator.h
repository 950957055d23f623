// Softmax attention behind the interface of operators.
#pragma once

#include "reference/operators/operator.h"

namespace attest {

const Operator& softmax_operator();

/// The number of visible (query, key) pairs of all heads and batches.
double count_visible_pairs(const Call& call, const Inputs& inputs);

}  // namespace attest
