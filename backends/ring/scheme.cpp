#include "backends/ring/scheme.h"

#include <algorithm>

namespace attest::ring {
namespace {

using support::PartOrder;
using support::spans_of_part;

constexpr std::int64_t kSmallPart = std::int64_t{4} << 20;  // bytes that are not worth cutting

PartOrder order_of(Scheme scheme) { return scheme == Scheme::ring_zigzag ? PartOrder::zigzag : PartOrder::contiguous; }

}  // namespace

PositionSpan heads_of(std::int64_t heads, int rank, int ranks) {
  const Spans spans = spans_of_part(heads, rank, ranks, PartOrder::contiguous);
  return spans.empty() ? PositionSpan{} : spans.front();
}

PositionSpan key_heads_of(const Call& call, int rank, int ranks) {
  const PositionSpan own = heads_of(call.query_heads, rank, ranks);
  if (own.first == own.last) return {};
  const std::int64_t in_group = call.heads_per_group();
  return {own.first / in_group, (own.last - 1) / in_group + 1};
}

Shard shard_of(Scheme scheme, const Call& call, int rank, int ranks) {
  const Spans queries = spans_of_part(call.query_length, rank, ranks, order_of(scheme));
  const Spans keys = spans_of_part(call.key_length, rank, ranks, order_of(scheme));
  const PositionSpan all{0, call.query_heads};
  Shard shard{all, {0, call.key_heads}, queries, keys, all, queries, whole(call.key_length)};
  if (scheme == Scheme::head_parallel) {
    shard.mask_heads = heads_of(call.query_heads, rank, ranks);
    shard.mask_queries = whole(call.query_length);
  }
  if (scheme == Scheme::key_parallel) {
    shard.queries = shard.mask_queries = whole(call.query_length);
    shard.mask_keys = keys;
  }
  return shard;
}

std::vector<Shard> shards_of(Scheme scheme, const Call& call, int ranks) {
  std::vector<Shard> shards;
  for (int rank = 0; rank < ranks; ++rank) shards.push_back(shard_of(scheme, call, rank, ranks));
  return shards;
}

std::int64_t merged_runs(Scheme scheme, const Call& call, int ranks) {
  switch (scheme) {
    case Scheme::ring:
    case Scheme::key_parallel: return ranks;
    case Scheme::ring_zigzag: return 2 * ranks;
    case Scheme::head_parallel: break;
  }
  return call.sinks ? 1 : 0;
}

std::vector<RingStep> steps_of(Scheme scheme, const Call& call, int ranks) {
  std::int64_t longest = 0;
  for (int rank = 0; rank < ranks; ++rank)
    longest = std::max(longest, length_of(shard_of(scheme, call, rank, ranks).keys));
  const std::int64_t of_head =
      longest * (call.key_dim + call.value_dim) * static_cast<std::int64_t>(size_of(call.dtype));
  const std::int64_t all = call.batch * call.key_heads;
  if (all * of_head <= kSmallPart || all <= 1) return {{{0, call.batch}, {0, call.key_heads}}};
  const std::int64_t at_once = std::clamp<std::int64_t>(kSmallPart / of_head, 1, call.key_heads);
  std::vector<RingStep> steps;
  for (std::int64_t b = 0; b < call.batch; ++b) {
    for (std::int64_t g = 0; g < call.key_heads; g += at_once)
      steps.push_back({{b, b + 1}, {g, std::min(g + at_once, call.key_heads)}});
  }
  return steps;
}

}  // namespace attest::ring
