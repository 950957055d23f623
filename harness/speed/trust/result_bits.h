// Whether two results are the same, bit for bit.
#pragma once

#include <cstdint>

#include "harness/comparison/guarded_outputs.h"

namespace attest {

/// A number for the bits of some thousand elements of each output, evenly spread: two results that differ have two.
std::uint64_t fingerprint(GuardedOutputs& outputs);

/// Whether every byte of the outputs is the same.
bool same_bits(GuardedOutputs& a, GuardedOutputs& b);

}  // namespace attest
