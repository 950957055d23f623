#include "harness/cases/other_launch.h"

#include <algorithm>

namespace attest {
namespace {

/// The whole length, or half of it where it was the whole.
std::int64_t other_length(std::int64_t now, std::int64_t most) { return now < most ? most : (most + 1) / 2; }

}  // namespace

Problem other_launch(const Problem& problem) {
  Problem other = problem;
  ++other.data.seed;  // of the numbers: that of dropout is the plan's
  const Call& p = problem.call;
  LengthSpec lengths;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    const bool empty = b + 1 == p.batch;
    const std::int64_t queries = empty ? 0 : other_length(p.query_count(b), p.query_length);
    const std::int64_t keys = empty ? 0 : other_length(p.key_count(b), p.key_length);
    lengths.query.push_back(queries);
    lengths.key.push_back(p.append ? std::max(keys, queries) : keys);
    // A query that is rotated by its place stands at a key.
    if (p.rope != Rope::none && p.rope_positions == 0) lengths.query.back() = std::min(queries, lengths.key.back());
  }
  other.call.lengths = std::move(lengths);
  return other;
}

}  // namespace attest
