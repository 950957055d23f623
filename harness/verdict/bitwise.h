// Tests whether a backend gives the same bits again: in another run, with other threads, and without the rest of the
// batch. Attention may be right without that. The caller judges results that differ.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>

#include "backends/backend.h"
#include "harness/comparison/guarded_outputs.h"
#include "harness/verdict/verdict.h"
#include "reference/call/call.h"

namespace attest {

/// Told of results with other bits, of which backend and call, and the cause that they have where they are wrong: it
/// says how they came about. May throw, as CaseFault.
using Differing = std::function<void(const Backend& backend, const Call& call, const Inputs& inputs,
                                     const GuardedOutputs& outputs, Cause cause)>;

/// `others` are the same backend made for other numbers of threads. Throws what the backends and `differing` throw.
BitwiseFacts bitwise_facts(Backend& backend, std::span<Backend* const> others, const Call& call, const Inputs& inputs,
                           const Differing& differing = {});

/// The call of sequence b alone with its inputs; nothing when a sequence cannot be computed alone.
struct OneSequence {
  Call call;
  Inputs inputs;
};
std::optional<OneSequence> one_sequence(const Call& call, const Inputs& inputs, std::int64_t b);

}  // namespace attest
