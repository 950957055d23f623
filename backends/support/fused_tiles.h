// The tiles of a fused attention on host threads: queries against keys with an online softmax. No score matrix is ever
// held: the workspace is one tile for each thread.
//
// Within a tile of queries the work goes by blocks of rows, so that a block's scores stay in the nearest cache while
// keys and values are read (and packed) once for the whole tile; a block skips the keys that none of its rows sees.
//
// What a backend brings is a Kernel, one for each thread, that does the arithmetic on dense tiles in its library's way:
//
//   Kernel(TileShape, key_dim, value_dim)
//   static constexpr std::int64_t kKeyStep            a block's first key is a multiple of it
//   void load_queries(Rows<Real> q, rows, scale, sink)  keeps scale*q; forgets the rows before it; sink -inf: none
//   void load_keys(Rows<Real> k, keys)                the tile's keys; stay valid until the next tile
//   void load_values(Rows<Real> v, keys)
//   void scores(Block)                                S = Q * K^T for the block
//   Real* score_row(Block, r)                         row r of the tile, at the block's first key, to change in place
//   void tanh_row(Real*, n)                           in place
//   void softmax(Block)                               S becomes exp(S - m), m and l move on, O is rescaled
//   void accumulate(Block)                            O += S * V
//   void add_product(r, weight, v)                    O_r += weight * v, for single keys
//   void finish(r, out, lse)                          O_r / l; an empty row gives 0 and -inf
//   Real maximum(r), sum(r)                           m, and l under it; -inf and 0 of an empty row
//
// Softmax of a hidden key (score -inf) must be exactly 0, and NaN must stay NaN.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "backends/support/held_part.h"
#include "backends/support/host_results.h"
#include "backends/support/key_rows.h"
#include "backends/support/score_options.h"
#include "backends/support/score_stages.h"
#include "backends/support/tiles.h"

namespace attest::support {

/// Rows [row, row + rows) against keys [key, key + keys), both counted within the tile.
struct Block {
  std::int64_t row, rows, key, keys;
};

/// Used by any number of threads at once, each with a Worker of its own.
template <class Real, class Kernel>
class FusedTiles {
 public:
  /// A tile of queries against a tile of keys.
  struct Tile {
    std::int64_t b, h, group, row, rows, key, keys;
  };

  struct Worker {
    Worker(const Call& problem, TileShape tile) : kernel(tile, problem.key_dim, problem.value_dim) {
      queries.reserve(static_cast<std::size_t>(tile.queries * problem.key_dim));
      keys.reserve(static_cast<std::size_t>(tile.keys * problem.key_dim));
      values.reserve(static_cast<std::size_t>(tile.keys * problem.value_dim));
      suspects.reserve(static_cast<std::size_t>(tile.keys));
      rows.reserve(static_cast<std::size_t>(tile.queries));
    }
    Kernel kernel;
    std::vector<Real> queries, keys, values;
    std::vector<Real> clean;             ///< values of a tile with suspects; grows in the rare case only
    std::vector<std::int64_t> suspects;  ///< keys of a tile whose values are not finite
    std::vector<RowKeys> rows;           ///< what each row of the query tile may see
  };

  /// All outlive it; inputs, and which part of the call's they are, may change. Heads, rows and keys are the call's.
  FusedTiles(const Call& call, const Inputs& inputs, TileShape shape, const HeldPart& held = kAllHeld)
      : problem_(call), tile_(shape), inputs_(inputs), held_(held), options_(call, inputs, held) {}

  const TileShape& shape() const { return tile_; }
  const ScoreOptions<Real>& options() const { return options_; }

  /// A tile of queries, at most shape().queries and all stored, against those keys of `among` that they see. The
  /// kernel's finish() is left to the caller. False where none of them sees any of `among`, and there is no sink: the
  /// kernel was not asked.
  bool attend(const Tile& rows_of_tile, KeyRange among, Real sink, Worker& worker) const {
    Tile tile = rows_of_tile;
    worker.rows.clear();
    KeyRange keys;
    for (std::int64_t r = 0; r < tile.rows; ++r) {
      worker.rows.push_back(options_.visibility().row(tile.b, tile.row + r));
      keys.widen(worker.rows.back().prefix);
      keys.widen(worker.rows.back().band);
    }
    keys = keys.within(among.first, among.last);
    if (keys.empty() && sink == -std::numeric_limits<Real>::infinity()) return false;
    load_queries(tile, sink, worker);
    for (tile.key = keys.first; tile.key < keys.last; tile.key += tile_.keys) {
      tile.keys = std::min(tile_.keys, keys.last - tile.key);
      bool loaded = false;
      for (std::int64_t r = 0; r < tile.rows; r += tile_.block) {
        const Block block = block_of(tile, r, worker);
        if (block.keys <= 0) continue;
        if (!loaded) {  // a tile of keys that nobody sees is not even read
          load_keys(tile, worker);
          load_values(tile, worker);
          loaded = true;
        }
        attend_block(tile, block, worker);
      }
    }
    return true;
  }

  /// The stages of the scores of a tile of queries, which attend() has seen, computed again over every key of `among`:
  /// write(stage, row of the tile, first key, keys, scores), for raw, capped and biased in turn.
  template <class Write>
  void each_stage(Tile tile, KeyRange among, Worker& worker, const Write& write) const {
    load_queries(tile, -std::numeric_limits<Real>::infinity(), worker);
    for (tile.key = among.first; tile.key < among.last; tile.key += tile_.keys) {
      tile.keys = std::min(tile_.keys, among.last - tile.key);
      load_keys(tile, worker);
      for (std::int64_t first = 0; first < tile.rows; first += tile_.block) {
        const Block block{first, std::min(tile_.block, tile.rows - first), 0, tile.keys};
        worker.kernel.scores(block);
        for (std::int64_t r = first; r < first + block.rows; ++r) {
          const auto tanh_row = [&](Real* numbers, std::int64_t n) { worker.kernel.tanh_row(numbers, n); };
          support::each_stage({tile.b, tile.h, tile.row + r, tile.key, tile.keys},
                              worker.rows[static_cast<std::size_t>(r)], options_, tanh_row,
                              worker.kernel.score_row(block, r),
                              [&](Output stage, const Real* scores) { write(stage, r, tile.key, tile.keys, scores); });
        }
      }
    }
  }

  /// Bytes of one worker.
  std::size_t workspace_bytes() const {
    const std::int64_t numbers = tile_.queries * (problem_.key_dim + problem_.value_dim) + tile_.block * tile_.keys +
                                 tile_.keys * (problem_.key_dim + problem_.value_dim);
    return static_cast<std::size_t>(numbers) * sizeof(Real);
  }

 private:
  void load_queries(const Tile& tile, Real sink, Worker& worker) const {
    const Rows<Real> rows =
        rows_of(inputs_.q(), tile.b, tile.h - held_.head, tile.row - held_.query, tile.rows, worker.queries);
    worker.kernel.load_queries(rows, tile.rows, static_cast<Real>(problem_.scale_value()), sink);
  }

  /// The keys of the tile that some row of the block sees; none when blocks hide them all.
  Block block_of(const Tile& tile, std::int64_t row, const Worker& worker) const {
    const std::int64_t rows = std::min(tile_.block, tile.rows - row);
    KeyRange seen;
    for (std::int64_t r = row; r < row + rows; ++r) {
      const RowKeys& keys = worker.rows[static_cast<std::size_t>(r)];
      seen.widen(keys.prefix.within(tile.key, tile.key + tile.keys));
      seen.widen(keys.band.within(tile.key, tile.key + tile.keys));
    }
    if (seen.empty() || !options_.visibility().any_block(tile.b, tile.h, tile.row + row, rows, seen))
      return {row, rows, 0, 0};
    const std::int64_t first = (seen.first - tile.key) / Kernel::kKeyStep * Kernel::kKeyStep;
    return {row, rows, first, seen.last - tile.key - first};
  }

  void attend_block(const Tile& tile, const Block& block, Worker& worker) const {
    Kernel& kernel = worker.kernel;
    const std::int64_t key = tile.key + block.key;
    kernel.scores(block);
    for (std::int64_t r = block.row; r < block.row + block.rows; ++r) {
      Real* scores = kernel.score_row(block, r);
      const ScoreRow at{tile.b, tile.h, tile.row + r, key, block.keys};
      options_.cap(at, scores, [&](Real* row, std::int64_t n) { kernel.tanh_row(row, n); });
      options_.bias(at, worker.rows[static_cast<std::size_t>(r)], scores);
    }
    kernel.softmax(block);
    for (std::int64_t r = block.row; options_.drops() && r < block.row + block.rows; ++r)
      options_.drop({tile.b, tile.h, tile.row + r, key, block.keys}, kernel.score_row(block, r));
    kernel.accumulate(block);
    if (!worker.suspects.empty()) add_suspects(tile, block, worker);
  }

  /// Rows [first, first + count) of head h as Real: where they lie when that needs no change, else through `buffer`.
  static Rows<Real> rows_of(const ConstTensor& t, std::int64_t b, std::int64_t h, std::int64_t first,
                            std::int64_t count, std::vector<Real>& buffer) {
    if (const auto rows = rows_in_place<Real>(t, b, h, first)) return *rows;
    const std::int64_t columns = t.shape[3];
    buffer.resize(static_cast<std::size_t>(count * columns));
    for (std::int64_t l = 0; l < count; ++l) read_row(t, b, h, first + l, buffer.data() + l * columns);
    return {buffer.data(), columns};
  }

  /// Where a key of the call lies.
  KeyPlace place(const Tile& tile, std::int64_t key) const {
    return find_key(inputs_, tile.b - held_.batch, key - held_.key);
  }

  /// Keys or values of the tile, from past, pages or one tensor. Nothing but the tile is ever copied.
  Rows<Real> key_rows(const Tile& tile, Cache which, std::vector<Real>& buffer) const {
    const std::int64_t group = tile.group - held_.group;
    if (const auto at = place_of_keys(inputs_, tile.b - held_.batch, tile.key - held_.key, tile.keys))
      return rows_of(tensor_of(inputs_, *at, which), at->batch, group, at->row, tile.keys, buffer);
    const std::int64_t columns = which == Cache::values ? problem_.value_dim : problem_.key_dim;
    buffer.resize(static_cast<std::size_t>(tile.keys * columns));
    for (std::int64_t j = 0; j < tile.keys; ++j) {
      const KeyPlace at = place(tile, tile.key + j);
      read_row(tensor_of(inputs_, at, which), at.batch, group, at.row, buffer.data() + j * columns);
    }
    return {buffer.data(), columns};
  }

  void load_keys(const Tile& tile, Worker& worker) const {
    worker.kernel.load_keys(key_rows(tile, Cache::keys, worker.keys), tile.keys);
  }

  /// A hidden key has weight 0, and 0 * NaN would leak: keys whose values are not finite are suspects. They enter the
  /// product as zeros and are added one by one to the rows that see them.
  void load_values(const Tile& tile, Worker& worker) const {
    const std::int64_t columns = problem_.value_dim;
    const Rows<Real> values = key_rows(tile, Cache::values, worker.values);
    worker.suspects.clear();
    if (!has_non_finite(values, tile.keys, columns)) {
      worker.kernel.load_values(values, tile.keys);
      return;
    }
    worker.clean.resize(static_cast<std::size_t>(tile.keys * columns));
    for (std::int64_t j = 0; j < tile.keys; ++j) {
      const Real* from = values.data + j * values.stride;
      Real* to = worker.clean.data() + j * columns;
      if (has_non_finite<Real>({from, 0}, 1, columns)) {
        worker.suspects.push_back(j);
        std::fill_n(to, columns, Real{0});
      } else {
        std::copy_n(from, columns, to);
      }
    }
    worker.kernel.load_values({worker.clean.data(), columns}, tile.keys);
  }

  void add_suspects(const Tile& tile, const Block& block, Worker& worker) const {
    std::vector<Real> value(static_cast<std::size_t>(problem_.value_dim));
    for (std::int64_t j : worker.suspects) {
      if (j < block.key || j >= block.key + block.keys) continue;
      const KeyPlace at = place(tile, tile.key + j);
      read_row(tensor_of(inputs_, at, Cache::values), at.batch, tile.group - held_.group, at.row, value.data());
      for (std::int64_t r = block.row; r < block.row + block.rows; ++r) {
        const RowKeys& row = worker.rows[static_cast<std::size_t>(r)];
        if (!options_.visibility().sees(tile.b, tile.h, tile.row + r, row, tile.key + j)) continue;
        worker.kernel.add_product(r, worker.kernel.score_row(block, r)[j - block.key], value.data());
      }
    }
  }

  const Call& problem_;
  TileShape tile_;
  const Inputs& inputs_;
  const HeldPart& held_;
  const ScoreOptions<Real> options_;
};

}  // namespace attest::support
