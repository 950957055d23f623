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
//   void load_queries(Rows<Real> q, rows, scale)      keeps scale*q; forgets the rows before it
//   void load_keys(Rows<Real> k, keys)                the tile's keys; stay valid until the next tile
//   void load_values(Rows<Real> v, keys)
//   void scores(Block)                                S = Q * K^T for the block
//   Real* score_row(Block, r)                         row r of the tile, at the block's first key, to mask in place
//   void softmax(Block)                               S becomes exp(S - m), m and l move on, O is rescaled
//   void accumulate(Block)                            O += S * V
//   void add_product(r, weight, v, stride)            O_r += weight * v, for single keys
//   void finish(r, out, lse)                          O_r / l; an empty row gives 0 and -inf
//
// Softmax of a hidden key (score -inf) must be exactly 0, and NaN must stay NaN.
#pragma once

#include <omp.h>

#include <exception>
#include <memory>
#include <vector>

#include "backends/backend.h"
#include "backends/support/tiles.h"
#include "backends/support/visibility.h"

namespace attest::support {

struct TileShape {
  std::int64_t queries, keys, block;  ///< block: rows of queries whose scores exist at a time
};

/// Rows [row, row + rows) against keys [key, key + keys), both counted within the tile.
struct Block {
  std::int64_t row, rows, key, keys;
};

template <class Real, class Kernel>
class FusedHostPlan : public Plan {
 public:
  FusedHostPlan(const Problem& problem, int threads, TileShape most) : problem_(problem), tile_(most) {
    tile_.queries = std::min(most.queries, std::max<std::int64_t>(problem.query_length, 1));
    tile_.keys = std::min(most.keys, std::max<std::int64_t>(problem.key_length, 1));
    tile_.block = std::min(most.block, tile_.queries);
    const std::int64_t rows = problem.batch * problem.query_heads * problem.query_length;
    out_.resize(static_cast<std::size_t>(rows * problem.value_dim));
    lse_.resize(static_cast<std::size_t>(rows));
    tiles_per_head_ = (problem.query_length + tile_.queries - 1) / tile_.queries;
    tasks_ = problem.batch * problem.query_heads * tiles_per_head_;
    // Waking the team costs some microseconds, and its idle members spin.
    worth_threads_ = tasks_ > 1 && dense_multiply_adds(problem) > 2e5;
    const auto workers = std::min<std::int64_t>(threads, std::max<std::int64_t>(tasks_, 1));
    for (std::int64_t n = 0; n < workers; ++n) workers_.push_back(std::make_unique<Worker>(problem, tile_));
  }

  void upload(const Inputs& inputs) override { inputs_ = inputs; }

  void run() override {
    const Visibility visibility(problem_, inputs_.mask);
    std::exception_ptr failure;
    // Long query tiles first: with a causal mask the last ones of a head have the most keys.
#pragma omp parallel for schedule(dynamic, 1) num_threads(static_cast<int>(workers_.size())) if (worth_threads_)
    for (std::int64_t task = 0; task < tasks_; ++task) {
      try {
        const std::int64_t heads = problem_.batch * problem_.query_heads;
        const std::int64_t tile = tiles_per_head_ - 1 - task / heads, head = task % heads;
        attend(visibility, head / problem_.query_heads, head % problem_.query_heads, tile * tile_.queries,
               *workers_[static_cast<std::size_t>(omp_get_thread_num())]);
      } catch (...) {
#pragma omp critical
        failure = std::current_exception();
      }
    }
    if (failure) std::rethrow_exception(failure);
  }

  void download(const Outputs& outputs) override {
    const View<Real> out = outputs.out.as<Real>();
    std::size_t row = 0;
    for (std::int64_t b = 0; b < problem_.batch; ++b) {
      for (std::int64_t h = 0; h < problem_.query_heads; ++h) {
        for (std::int64_t i = 0; i < problem_.query_length; ++i, ++row) {
          const Real* from = out_.data() + row * static_cast<std::size_t>(problem_.value_dim);
          for (std::int64_t c = 0; c < problem_.value_dim; ++c) out(b, h, i, c) = from[c];
          if (outputs.lse) outputs.lse->as<Real>()(b, h, i, 0) = lse_[row];
        }
      }
    }
  }

  std::size_t workspace_bytes() const override {
    const std::int64_t tile = tile_.queries * (problem_.key_dim + problem_.value_dim) + tile_.block * tile_.keys +
                              tile_.keys * (problem_.key_dim + problem_.value_dim);
    return workers_.size() * static_cast<std::size_t>(tile) * sizeof(Real);
  }

 private:
  struct Worker {
    Worker(const Problem& problem, TileShape tile) : kernel(tile, problem.key_dim, problem.value_dim) {
      queries.reserve(static_cast<std::size_t>(tile.queries * problem.key_dim));
      keys.reserve(static_cast<std::size_t>(tile.keys * problem.key_dim));
      values.reserve(static_cast<std::size_t>(tile.keys * problem.value_dim));
      suspects.reserve(static_cast<std::size_t>(tile.keys));
    }
    Kernel kernel;
    std::vector<Real> queries, keys, values;
    std::vector<Real> clean;  ///< values of a tile with suspects; grows in the rare case only
    std::vector<std::int64_t> suspects;  ///< keys of a tile whose values are not finite
  };

  struct Tile {
    std::int64_t b, h, group, row, rows, key, keys;
  };

  void attend(const Visibility& visibility, std::int64_t b, std::int64_t h, std::int64_t first_row, Worker& worker) {
    const std::int64_t rows = std::min(tile_.queries, problem_.query_length - first_row);
    Tile tile{b, h, h / problem_.heads_per_group(), first_row, rows, 0, 0};
    worker.kernel.load_queries(rows_of(inputs_.q.as<const Real>(), b, h, first_row, rows, worker.queries), rows,
                               static_cast<Real>(problem_.scale_value()));
    const KeyRange keys = visibility.range(first_row, first_row + rows);
    for (tile.key = keys.first; tile.key < keys.last; tile.key += tile_.keys) {
      tile.keys = std::min(tile_.keys, keys.last - tile.key);
      worker.kernel.load_keys(
          rows_of(inputs_.k.as<const Real>(), b, tile.group, tile.key, tile.keys, worker.keys), tile.keys);
      load_values(tile, worker);
      for (std::int64_t r = 0; r < rows; r += tile_.block) attend_block(visibility, tile, r, worker);
    }
    const std::int64_t row = (b * problem_.query_heads + h) * problem_.query_length + first_row;
    for (std::int64_t r = 0; r < rows; ++r) {
      worker.kernel.finish(r, out_.data() + (row + r) * problem_.value_dim, lse_.data() + row + r);
    }
  }

  void attend_block(const Visibility& visibility, const Tile& tile, std::int64_t row, Worker& worker) {
    const std::int64_t rows = std::min(tile_.block, tile.rows - row);
    const KeyRange seen = visibility.range(tile.row + row, tile.row + row + rows);
    const std::int64_t first = std::max<std::int64_t>(seen.first - tile.key, 0) / Kernel::kKeyStep * Kernel::kKeyStep;
    const std::int64_t last = std::min(seen.last - tile.key, tile.keys);
    if (first >= last) return;
    const Block block{row, rows, first, last - first};
    worker.kernel.scores(block);
    hide(visibility, tile, block, worker.kernel);
    worker.kernel.softmax(block);
    worker.kernel.accumulate(block);
    if (!worker.suspects.empty()) add_suspects(visibility, tile, block, worker);
  }

  /// Hidden keys get the score -inf; an additive mask is added.
  void hide(const Visibility& visibility, const Tile& tile, const Block& block, Kernel& kernel) const {
    constexpr Real kHidden = -std::numeric_limits<Real>::infinity();
    const std::int64_t key = tile.key + block.key;
    for (std::int64_t r = block.row; r < block.row + block.rows; ++r) {
      const KeyRange range = visibility.range(tile.row + r);
      const std::int64_t first = std::clamp<std::int64_t>(range.first - key, 0, block.keys);
      const std::int64_t last = std::clamp<std::int64_t>(range.last - key, first, block.keys);
      Real* scores = kernel.score_row(block, r);
      if (visibility.has_mask() && first < last) {
        visibility.apply_mask(tile.b, tile.h, tile.row + r, key + first, last - first, scores + first);
      }
      std::fill(scores, scores + first, kHidden);
      std::fill(scores + last, scores + block.keys, kHidden);
    }
  }

  /// A hidden key has weight 0, and 0 * NaN would leak: keys whose values are not finite are suspects. They enter the
  /// product as zeros and are added one by one to the rows that see them.
  void load_values(const Tile& tile, Worker& worker) {
    const std::int64_t columns = problem_.value_dim;
    const Rows<Real> values =
        rows_of(inputs_.v.as<const Real>(), tile.b, tile.group, tile.key, tile.keys, worker.values);
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

  void add_suspects(const Visibility& visibility, const Tile& tile, const Block& block, Worker& worker) const {
    const auto v = inputs_.v.as<const Real>();
    for (std::int64_t j : worker.suspects) {
      if (j < block.key || j >= block.key + block.keys) continue;
      for (std::int64_t r = block.row; r < block.row + block.rows; ++r) {
        if (!visibility.sees(tile.b, tile.h, tile.row + r, tile.key + j)) continue;
        worker.kernel.add_product(r, worker.kernel.score_row(block, r)[j - block.key],
                                  &v(tile.b, tile.group, tile.key + j, 0), v.strides[3]);
      }
    }
  }

  const Problem problem_;
  TileShape tile_;
  Inputs inputs_{};
  std::int64_t tiles_per_head_ = 0, tasks_ = 0;
  bool worth_threads_ = false;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<Real> out_, lse_;
};

}  // namespace attest::support
