// How much there is to compute: of the reference, and of what a benchmark counts.
#pragma once

#include "reference/call/call.h"
#include "reference/call/tensors.h"

namespace attest {

/// Multiply-adds of the reference for one row, about.
double row_operations(const Call& call);
/// Visible (query, key) pairs of all heads and batches.
double count_visible_pairs(const Call& call, const Inputs& inputs);
/// Operations that a benchmark counts: for softmax attention those of visible pairs.
double useful_operations(const Call& call, const Inputs& inputs);

/// Multiply-adds of q*k and p*v over all pairs, visible or not.
double dense_multiply_adds(const Call& call);

}  // namespace attest
