#include "backends/ring/traffic.h"

namespace attest::ring {
namespace {

std::int64_t rows_of(std::int64_t length, int rank, int ranks) {
  return length_of(support::spans_of_part(length, rank, ranks, support::PartOrder::contiguous));
}

std::int64_t count(const PositionSpan& span) { return span.last - span.first; }

}  // namespace

std::int64_t bytes_sent_by(Scheme scheme, const Call& call, int rank, int ranks) {
  const auto stored = static_cast<std::int64_t>(size_of(call.dtype));
  const auto computed = static_cast<std::int64_t>(size_of(accumulator_of(call.dtype)));
  const std::int64_t result = (call.value_dim + 1) * computed;  // of one row: out and lse
  switch (scheme) {
    case Scheme::ring:
    case Scheme::ring_zigzag: {
      // In the last of its steps a rank has the part of its right-hand neighbour, which goes nowhere.
      const std::int64_t kept = length_of(shard_of(scheme, call, (rank + 1) % ranks, ranks).keys);
      return call.batch * call.key_heads * (call.key_length - kept) * (call.key_dim + call.value_dim) * stored;
    }
    case Scheme::head_parallel: {
      std::int64_t query_heads = 0,
                   key_heads = 0;  // of other ranks; a key head counts once for each rank that reads it
      for (int other = 0; other < ranks; ++other) {
        if (other == rank) continue;
        query_heads += count(heads_of(call.query_heads, other, ranks));
        key_heads += count(key_heads_of(call, other, ranks));
      }
      const std::int64_t queries = rows_of(call.query_length, rank, ranks),
                         keys = rows_of(call.key_length, rank, ranks);
      const std::int64_t others = call.query_length - queries;
      return call.batch * (query_heads * queries * call.key_dim * stored +
                           key_heads * keys * (call.key_dim + call.value_dim) * stored +
                           count(heads_of(call.query_heads, rank, ranks)) * others * result);
    }
    case Scheme::key_parallel: return rank == 0 ? 0 : call.batch * call.query_heads * call.query_length * result;
  }
  return 0;
}

}  // namespace attest::ring
