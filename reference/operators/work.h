// The amount of work: of the reference, and as benchmarks count it.
#pragma once

#include "reference/call/call.h"
#include "reference/call/tensors.h"

namespace attest {

/// The approximate number of multiply-adds of the reference for one row.
double row_operations(const Call& call);
/// The number of visible (query, key) pairs of all heads and batches.
double count_visible_pairs(const Call& call, const Inputs& inputs);
/// The operations that a benchmark counts: for softmax attention those of visible pairs.
double useful_operations(const Call& call, const Inputs& inputs);

/// The multiply-adds of q*k and p*v over all pairs, visible or not.
double dense_multiply_adds(const Call& call);

}  // namespace attest
