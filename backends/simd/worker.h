// What one thread of backends/simd works in: the packed keys of a chunk, and the state of a task's rows.
#pragma once

#include <algorithm>
#include <optional>
#include <type_traits>
#include <vector>

#include "backends/simd/packed_keys.h"
#include "backends/simd/packed_pairs.h"
#include "backends/simd/tasks.h"
#include "backends/support/aligned.h"

namespace attest::simd {

/// What the rows of a block see.
struct BlockKeys {
  support::KeyRange some;  ///< seen by at least one row
  support::KeyRange all;   ///< seen by every row
  bool intervals = true;   ///< each row sees one interval
};

/// What a thread needs besides where operands are pairs of bf16.
struct PairWorker {
  PairWorker(const Call& call, const Kernels<float>& kernels, std::int64_t rows, std::int64_t block, std::int64_t chunk)
      : packed(kernels, chunk, call.key_dim, call.value_dim) {
    tile.query_stride = PackedKeys<float>::padded(pairs_of(call.key_dim), kPairsOfVector);
    tile.scale = static_cast<float>(call.scale_value());
    queries.resize(static_cast<std::size_t>(rows * tile.query_stride));
    weights.resize(static_cast<std::size_t>(block * kTileKeys / 2));
    tile.weights = weights.data();
  }

  PackedPairs packed;
  support::Aligned<Pair> queries, weights;
  PairTile tile;  ///< of the tile at hand
};

/// Allocated once, for tasks of at most `rows` rows, tiles of `block` rows and chunks of `chunk` keys.
template <class Real>
struct Worker {
  Worker(const Call& call, const Kernels<Real>& kernels, std::int64_t rows, std::int64_t block, std::int64_t chunk,
         bool of_pairs)
      : packed(kernels, of_pairs ? kTileKeys : chunk, call) {
    const auto padded = static_cast<std::size_t>(PackedKeys<Real>::padded(std::max(rows, kFewRows), kernels.rows));
    queries.resize(padded * static_cast<std::size_t>(call.key_dim));
    if constexpr (std::is_same_v<Real, float>) {
      if (of_pairs) pairs.emplace(call, kernels, static_cast<std::int64_t>(padded), block, chunk);
    }
    out.resize(padded * static_cast<std::size_t>(packed.columns()));
    maximum.resize(padded);
    sum.resize(padded * static_cast<std::size_t>(kernels.lanes));
    weights.resize(static_cast<std::size_t>(block * kTileKeys));
    first.resize(static_cast<std::size_t>(block));
    last.resize(static_cast<std::size_t>(block));
    value.resize(static_cast<std::size_t>(std::max(call.key_dim, call.value_dim)));
    before.resize(static_cast<std::size_t>(kFewRows * packed.columns()));
    head_weights.resize(static_cast<std::size_t>(kHeadRows * kHeadKeys));
    intervals.resize(static_cast<std::size_t>(2 * kNarrowRows));
    places.reserve(padded);
    seen.reserve(padded);
    if (call.mask) mask_rows.reserve(padded);
    blocks.reserve(padded);
  }

  std::size_t bytes() const {
    const std::size_t own = (queries.size() + out.size() + maximum.size() + sum.size() + weights.size() +
                             head_weights.size() + intervals.size()) *
                            sizeof(Real);
    if (!pairs) return packed.bytes() + own;
    return packed.bytes() + own + pairs->packed.bytes() +
           (pairs->queries.size() + pairs->weights.size()) * sizeof(Pair);
  }

  PackedKeys<Real> packed;
  std::optional<PairWorker> pairs;
  support::Aligned<Real> queries, out, maximum, sum, weights, value;
  support::Aligned<Real> head_weights;  ///< of a head that is taken whole
  support::Aligned<Real> intervals;     ///< of the rows of a NarrowTile: first keys, last ones
  support::Aligned<Real> before;        ///< O of few rows, before a tile
  std::vector<std::int64_t> first, last;
  std::vector<TaskRow> places;  ///< of the task's rows, and what each of them sees
  std::vector<support::RowKeys> seen;
  std::vector<const void*> mask_rows;  ///< of the task's rows, where kernels read the mask
  std::vector<BlockKeys> blocks;
};

}  // namespace attest::simd
