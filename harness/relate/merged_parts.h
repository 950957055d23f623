// Results for parts of the keys, merged by their logsumexp, held against the result for all keys.
#pragma once

#include <vector>

#include "harness/relate/differences.h"

namespace attest {

/// One part of the keys: its result, and the bounds of it.
struct KeyPart {
  const Arrangement& arrangement;
  const GuardedOutputs& outputs;
  MakeBounds bounds;
};

/// Merged in float64. `lse_base`: as the backend states it.
Differences differences_of_merged(const Call& whole, const GuardedOutputs& of_whole, const std::vector<KeyPart>& parts,
                                  const MakeBounds& whole_bounds, const std::string& lse_base);

}  // namespace attest
