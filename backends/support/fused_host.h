// The schedule of a fused attention on host threads: tiles of queries against tiles of keys with an online softmax.
// No score matrix is ever held: the workspace is one tile for each thread.
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
//
// Softmax of a hidden key (score -inf) must be exactly 0, and NaN must stay NaN.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "backends/backend.h"
#include "backends/support/host_results.h"
#include "backends/support/host_threads.h"
#include "backends/support/key_rows.h"
#include "backends/support/score_options.h"
#include "backends/support/score_stages.h"
#include "backends/support/tiles.h"
#include "reference/work.h"

namespace attest::support {

/// Rows [row, row + rows) against keys [key, key + keys), both counted within the tile.
struct Block {
  std::int64_t row, rows, key, keys;
};

template <class Real, class Kernel>
class FusedHostPlan : public Plan {
 public:
  FusedHostPlan(const Call& problem, int threads, TileShape max)
      : problem_(problem), tile_(max), results_(problem), options_(problem_, inputs_) {
    tile_.queries = std::min(even_tile_rows(problem, threads, max.queries, max.block),
                             std::max<std::int64_t>(problem.query_length, 1));
    tile_.keys = std::min(max.keys, std::max<std::int64_t>(problem.key_length, 1));
    tile_.block = std::min(max.block, tile_.queries);
    tiles_per_head_ = (problem.query_length + tile_.queries - 1) / tile_.queries;
    threads_.emplace(threads, tasks(), dense_multiply_adds(problem));
    for (std::int64_t n = 0; n < threads_->workers(); ++n) workers_.push_back(std::make_unique<Worker>(problem, tile_));
  }

  void upload(const Inputs& inputs) override { inputs_ = inputs; }

  void run() override {
    // Long query tiles first: with a causal mask the last ones of a head have the most keys.
    threads_->each(tasks(), [this](std::int64_t task, std::size_t worker) {
      const std::int64_t heads = problem_.batch * problem_.query_heads;
      const std::int64_t tile = tiles_per_head_ - 1 - task / heads, head = task % heads;
      attend(head / problem_.query_heads, head % problem_.query_heads, tile * tile_.queries, *workers_[worker]);
    });
  }

  void download(const Outputs& outputs) override { results_.download(inputs_, outputs); }

  std::size_t workspace_bytes() const override {
    const std::int64_t tile = tile_.queries * (problem_.key_dim + problem_.value_dim) + tile_.block * tile_.keys +
                              tile_.keys * (problem_.key_dim + problem_.value_dim);
    return workers_.size() * static_cast<std::size_t>(tile) * sizeof(Real);
  }

 private:
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

  std::int64_t tasks() const { return problem_.batch * problem_.query_heads * tiles_per_head_; }

  /// A tile of queries against a tile of keys.
  struct Tile {
    std::int64_t b, h, group, row, rows, key, keys;
  };

  void attend(std::int64_t b, std::int64_t h, std::int64_t first_row, Worker& worker) {
    // Rows that are not stored at all have no result; rows that are padding have an empty one.
    const std::int64_t stored = problem_.packed_sequences() ? problem_.query_count(b) : problem_.query_length;
    const std::int64_t rows = std::min(tile_.queries, stored - first_row);
    if (rows <= 0) return;
    Tile tile{b, h, h / problem_.heads_per_group(), first_row, rows, 0, 0};
    worker.kernel.load_queries(rows_of(inputs_.q, b, h, first_row, rows, worker.queries), rows,
                               static_cast<Real>(problem_.scale_value()), options_.sink(h));
    worker.rows.clear();
    KeyRange keys;
    for (std::int64_t r = 0; r < rows; ++r) {
      worker.rows.push_back(options_.visibility().row(b, first_row + r));
      keys.widen(worker.rows.back().prefix);
      keys.widen(worker.rows.back().band);
    }
    for (tile.key = keys.first; tile.key < keys.last; tile.key += tile_.keys) {
      tile.keys = std::min(tile_.keys, keys.last - tile.key);
      bool loaded = false;
      for (std::int64_t r = 0; r < rows; r += tile_.block) {
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
    for (std::int64_t r = 0; r < rows; ++r) {
      const std::size_t row = results_.row(b, h, first_row + r);
      worker.kernel.finish(r, results_.out_row(row), results_.lse.data() + row);
    }
    if (problem_.wants_scores()) write_stages(tile, worker);
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

  void attend_block(const Tile& tile, const Block& block, Worker& worker) {
    Kernel& kernel = worker.kernel;
    const std::int64_t key = tile.key + block.key;
    kernel.scores(block);
    for (std::int64_t r = block.row; r < block.row + block.rows; ++r) {
      Real* scores = kernel.score_row(block, r);
      options_.cap(scores, block.keys, [&](Real* row, std::int64_t n) { kernel.tanh_row(row, n); });
      options_.bias({tile.b, tile.h, tile.row + r, key, block.keys}, worker.rows[static_cast<std::size_t>(r)], scores);
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

  /// Keys or values of the tile, from past, pages or one tensor. Nothing but the tile is ever copied.
  Rows<Real> key_rows(const Tile& tile, Cache which, std::vector<Real>& buffer) const {
    if (const auto place = place_of_keys(inputs_, tile.b, tile.key, tile.keys)) {
      return rows_of(tensor_of(inputs_, *place, which), place->batch, tile.group, place->row, tile.keys, buffer);
    }
    const std::int64_t columns = which == Cache::values ? problem_.value_dim : problem_.key_dim;
    buffer.resize(static_cast<std::size_t>(tile.keys * columns));
    for (std::int64_t j = 0; j < tile.keys; ++j) {
      const KeyPlace at = place_of_key(inputs_, tile.b, tile.key + j);
      read_row(tensor_of(inputs_, at, which), at.batch, tile.group, at.row, buffer.data() + j * columns);
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
      const KeyPlace at = place_of_key(inputs_, tile.b, tile.key + j);
      read_row(tensor_of(inputs_, at, Cache::values), at.batch, tile.group, at.row, value.data());
      for (std::int64_t r = block.row; r < block.row + block.rows; ++r) {
        const RowKeys& row = worker.rows[static_cast<std::size_t>(r)];
        if (!options_.visibility().sees(tile.b, tile.h, tile.row + r, row, tile.key + j)) continue;
        worker.kernel.add_product(r, worker.kernel.score_row(block, r)[j - block.key], value.data());
      }
    }
  }

  /// Stages of the scores that were asked for, from a second product with every key.
  void write_stages(Tile tile, Worker& worker) {
    Kernel& kernel = worker.kernel;
    const auto tanh_row = [&](Real* numbers, std::int64_t n) { kernel.tanh_row(numbers, n); };
    for (tile.key = 0; tile.key < problem_.key_length; tile.key += tile_.keys) {
      tile.keys = std::min(tile_.keys, problem_.key_length - tile.key);
      load_keys(tile, worker);
      for (std::int64_t first = 0; first < tile.rows; first += tile_.block) {
        const Block block{first, std::min(tile_.block, tile.rows - first), 0, tile.keys};
        kernel.scores(block);
        for (std::int64_t r = first; r < first + block.rows; ++r) {
          support::write_stages({tile.b, tile.h, tile.row + r, tile.key, tile.keys},
                                worker.rows[static_cast<std::size_t>(r)], options_, tanh_row,
                                kernel.score_row(block, r), results_);
        }
      }
    }
    for (std::int64_t r = 0; r < tile.rows; ++r) finish_weights(tile.b, tile.h, tile.row + r, options_, results_);
  }

  const Call problem_;
  TileShape tile_;
  Inputs inputs_{};
  HostResults<Real> results_;
  const ScoreOptions<Real> options_;
  std::int64_t tiles_per_head_ = 0;
  std::optional<HostThreads> threads_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace attest::support
