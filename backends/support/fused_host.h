// The schedule of a fused attention on host threads: tiles of queries (fused_tiles.h) dealt out to the threads, then
// gradients where a call wants them (fused_gradients.h). What a backend brings is the Kernel that is described in the
// one, which names that of the other as Kernel::Gradients.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "backends/backend.h"
#include "backends/support/fused_gradients.h"
#include "backends/support/fused_tiles.h"
#include "backends/support/host_results.h"
#include "backends/support/host_threads.h"
#include "backends/support/own_cache.h"
#include "backends/support/prepared_rows.h"
#include "backends/support/score_stages.h"
#include "reference/call/call.h"
#include "reference/call/launch.h"

namespace attest::support {

/// The tile for a call: no larger than it, and small enough that each thread gets several.
inline TileShape tile_for(const Call& call, int threads, TileShape max) {
  TileShape tile{};
  tile.queries =
      std::min(even_tile_rows(call, threads, max.queries, max.block), std::max<std::int64_t>(call.query_length, 1));
  tile.keys = std::min(max.keys, std::max<std::int64_t>(call.key_length, 1));
  tile.block = std::min(max.block, tile.queries);
  return tile;
}

template <class Real, class Kernel>
class FusedHostPlan : public Plan {
  using Tiles = FusedTiles<Real, Kernel>;
  using Worker = typename Tiles::Worker;

 public:
  FusedHostPlan(const Call& problem, int threads, TileShape max)
      : problem_(problem), results_(problem), tiles_(problem_, inputs_, tile_for(problem, threads, max)) {
    if (problem.wants_gradients())
      gradients_.emplace(problem_, inputs_, results_, threads, typename Kernel::Gradients());
    if (!problem.runs_forward()) return;
    tiles_per_head_ = divide_up(problem.query_length, tiles_.shape().queries);
    threads_.emplace(threads, tasks(), dense_multiply_adds(problem));
    for (std::int64_t n = 0; n < threads_->workers(); ++n)
      workers_.push_back(std::make_unique<Worker>(problem, tiles_.shape()));
  }

  void upload(const Inputs& inputs) override { inputs_ = uploaded_ = cache_.upload(problem_, inputs); }

  void run() override {
    take_lengths(problem_, uploaded_);
    results_.set_lengths(problem_);
    cache_.append<Real>(problem_, uploaded_, [this](std::int64_t b, std::int64_t j, Real* key) {
      if (problem_.rotated_cache) PreparedRows<Real>::prepare_key(problem_, uploaded_, b, j, key);
    });
    inputs_ = prepared_.of(problem_, uploaded_);
    if (threads_) run_forward();
    if (gradients_) gradients_->run();
  }

  void download(const Outputs& outputs) override {
    results_.download(uploaded_, outputs);
    cache_.download(outputs);
  }

  std::size_t workspace_bytes() const override {
    return workers_.size() * tiles_.workspace_bytes() + (gradients_ ? gradients_->workspace_bytes() : 0) +
           cache_.bytes() + prepared_.bytes();
  }

 private:
  std::int64_t tasks() const { return problem_.batch * problem_.query_heads * tiles_per_head_; }

  void run_forward() {
    // Long query tiles first: with a causal mask the last ones of a head have the most keys.
    threads_->each(tasks(), [this](std::int64_t task, std::size_t worker) {
      const std::int64_t heads = problem_.batch * problem_.query_heads;
      const std::int64_t tile = tiles_per_head_ - 1 - task / heads, head = task % heads;
      attend(head / problem_.query_heads, head % problem_.query_heads, tile * tiles_.shape().queries,
             *workers_[worker]);
    });
  }

  void attend(std::int64_t b, std::int64_t h, std::int64_t first_row, Worker& worker) {
    // Rows that are not stored at all have no result; rows that are padding have an empty one.
    const std::int64_t rows = std::min(tiles_.shape().queries, problem_.stored_queries(b) - first_row);
    if (rows <= 0) return;
    const typename Tiles::Tile tile{b, h, h / problem_.heads_per_group(), first_row, rows, 0, 0};
    const bool seen = tiles_.attend(tile, {0, problem_.key_length}, tiles_.options().sink(h), worker);
    for (std::int64_t r = 0; r < rows; ++r) {
      const std::size_t row = results_.row(b, h, first_row + r);
      if (seen) {
        worker.kernel.finish(r, results_.out_row(row), results_.lse.data() + row);
        results_.keep_maximum(row, worker.kernel.maximum(r), worker.kernel.sum(r));
      } else {
        std::fill_n(results_.out_row(row), problem_.value_dim, Real{0});
        results_.lse[row] = -std::numeric_limits<Real>::infinity();
        results_.keep_maximum(row, results_.lse[row], Real{0});
      }
    }
    if (problem_.wants_scores()) write_stages(tile, worker);
  }

  /// Stages of the scores that were asked for, from a second product with every key.
  void write_stages(const typename Tiles::Tile& tile, Worker& worker) {
    tiles_.each_stage(tile, {0, problem_.key_length}, worker,
                      [&](Output stage, std::int64_t r, std::int64_t key, std::int64_t keys, const Real* scores) {
                        keep_stage(stage, {tile.b, tile.h, tile.row + r, key, keys}, scores, results_);
                      });
    for (std::int64_t r = 0; r < tile.rows; ++r)
      finish_weights(tile.b, tile.h, tile.row + r, tiles_.options(), results_);
  }

  Call problem_;       ///< with the lengths of the last run
  Inputs uploaded_{};  ///< as they came
  Inputs inputs_{};    ///< as the tiles read them
  OwnCache cache_;
  PreparedRows<Real> prepared_;
  HostResults<Real> results_;
  const Tiles tiles_;
  std::int64_t tiles_per_head_ = 0;
  std::optional<HostThreads> threads_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::optional<FusedGradients<Real, typename Kernel::Gradients>> gradients_;
};

}  // namespace attest::support
