// The ways in which attention is spread over ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "backends/ring/local_tensors.h"
#include "reference/call/call.h"

namespace attest::ring {

enum class Scheme : std::uint8_t {
  ring,           ///< each rank has a run of queries; keys and values go round
  ring_zigzag,    ///< the same with two pieces a rank, one from either end: even work under a causal mask
  head_parallel,  ///< all-to-all: runs of the sequence become heads, and back
  key_parallel,   ///< each rank has a run of keys; results go to rank 0
};

/// Which heads of `heads` a rank has.
PositionSpan heads_of(std::int64_t heads, int rank, int ranks);

/// Which key heads a rank's query heads read; neighbours may share one.
PositionSpan key_heads_of(const Call& call, int rank, int ranks);

/// What a rank holds after an upload.
Shard shard_of(Scheme scheme, const Call& call, int rank, int ranks);

/// Of every rank, in order.
std::vector<Shard> shards_of(Scheme scheme, const Call& call, int ranks);

/// Into how many runs of keys at most a row's keys are cut whose results are merged; 0: they are not.
std::int64_t merged_runs(Scheme scheme, const Call& call, int ranks);

/// Key heads that go round together, in one batch or in all: one step after the other, so that what is under way is no
/// more than half a part and, where that is much, one head.
struct RingStep {
  PositionSpan batches, groups;
};
std::vector<RingStep> steps_of(Scheme scheme, const Call& call, int ranks);

}  // namespace attest::ring
