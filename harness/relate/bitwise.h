// Tests whether a backend gives the same bits again: in another run, with other threads, and without the rest of the
// batch. Attention may be right without that. The caller judges results that differ.
#pragma once

#include <functional>
#include <span>

#include "backends/backend.h"
#include "harness/comparison/guarded_outputs.h"
#include "harness/verdict/verdict.h"
#include "reference/call/problem.h"

namespace attest {

/// Told of results with other bits, of which backend and call, and the cause that they have where they are wrong: it
/// says how they came about. May throw, as CaseFault.
using Differing = std::function<void(const Backend& backend, const Call& call, const Inputs& inputs,
                                     const GuardedOutputs& outputs, Cause cause)>;

/// `others` are the same backend made for other numbers of threads. Throws what the backends and `differing` throw.
BitwiseFacts bitwise_facts(Backend& backend, std::span<Backend* const> others, const Problem& problem,
                           const Inputs& inputs, const Differing& differing = {});

}  // namespace attest
