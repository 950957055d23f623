// Whether a backend gives the same bits again: in another run, with other threads, beside other sequences of a batch.
// Facts, not verdicts: attention may be right without any of them.
#pragma once

#include <optional>
#include <span>

#include "backends/backend.h"
#include "reference/problem.h"

namespace attest {

/// Nothing where the question can't be put: a batch of one, packed sequences, dropout that is drawn by the batch.
struct Bitwise {
  std::optional<bool> runs;     ///< the same plan five times, and a new plan
  std::optional<bool> threads;  ///< backends made for other numbers of threads
  std::optional<bool> batch;    ///< the first and the last sequence of the batch, each alone
};

/// `others` are the same backend made for other numbers of threads. Throws what the backends throw.
Bitwise bitwise_facts(Backend& backend, std::span<Backend* const> others, const Problem& problem, const Inputs& inputs);

/// The inputs of sequence b alone, and its problem; nothing when a sequence can't stand alone.
struct OneSequence {
  Problem problem;
  Inputs inputs;
};
std::optional<OneSequence> one_sequence(const Problem& problem, const Inputs& inputs, std::int64_t b);

}  // namespace attest
