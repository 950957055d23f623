// Arithmetic as a worker sends it. Every field must be named here: one left out arrives as its default.
#pragma once

#include "harness/backends/isolation/messages.h"
#include "reference/arithmetic/arithmetic.h"

namespace attest {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Arithmetic, accumulator, stored_weights, exp_ulps, log_ulps, tanh_ulps, base2, scale,
                                   division, key_block, lazy_threshold, normalised_before_storage, stored_scores,
                                   score_stores, sum_of_stored, flush_to_zero, state_chunk, parts, stored_parts,
                                   fused_log2e, no_maximum, weights_from_lse)

}  // namespace attest
