// Whether a backend gives the same bits again: in another run, with other threads, beside other sequences of a batch.
// Facts, not verdicts: attention may be right without any of them.
#pragma once

#include <optional>
#include <span>

#include "backends/backend.h"
#include "harness/verdict/verdict.h"
#include "reference/call.h"

namespace attest {

/// `others` are the same backend made for other numbers of threads. Throws what the backends throw.
BitwiseFacts bitwise_facts(Backend& backend, std::span<Backend* const> others, const Call& call, const Inputs& inputs);

/// The inputs of sequence b alone, and its call; nothing when a sequence can't stand alone.
struct OneSequence {
  Call call;
  Inputs inputs;
};
std::optional<OneSequence> one_sequence(const Call& call, const Inputs& inputs, std::int64_t b);

}  // namespace attest
