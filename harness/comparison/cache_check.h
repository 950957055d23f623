// The cache that a call appends to, held against what must lie there: new rows, and every other bit as it was.
#pragma once

#include "harness/comparison/cause.h"
#include "harness/comparison/guarded_outputs.h"
#include "reference/call/call.h"
#include "reference/call/tensors.h"

namespace attest {

/// The first element of cache_k or cache_v that isn't a new one and holds other bits than k and v did; empty where
/// there is none, or where the call doesn't append. New rows are results as any other, and compared with them.
OutputFault find_cache_fault(const Call& call, const Inputs& inputs, const GuardedOutputs& outputs);

}  // namespace attest
