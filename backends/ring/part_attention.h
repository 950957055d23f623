// Attention of a rank's queries over parts of the keys, one part after the other: results so far are merged row by row.
#pragma once

#include <omp.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "backends/ring/local_tensors.h"
#include "backends/support/eigen/packet_kernel.h"
#include "backends/support/fused_host.h"
#include "backends/support/group/crash_guard.h"
#include "backends/support/parts/row_merge.h"

namespace attest::ring {

/// Some batches and key heads of the keys and values in some spans: batch, key head, position, feature, dense.
struct KeyPart {
  const std::byte *k = nullptr, *v = nullptr;
  Spans keys;
  PositionSpan batches, groups;
};

/// The rows of a rank: those of some heads and of some spans of queries, in every batch.
template <class Real>
class PartAttention {
  using Tiles = support::FusedTiles<Real, support::PacketKernel<Real>>;
  using Worker = typename Tiles::Worker;
  using Merge = support::RowMerge<Real>;

 public:
  /// `share` holds q for these queries, and what hides keys from them. Sinks are of the parts `with_sinks` alone. The
  /// scores' stages are kept for `stage_keys`. All but the values outlive it.
  PartAttention(const Call& call, const LocalTensors& local, int threads, PositionSpan heads, Spans queries,
                Spans stage_keys, bool with_sinks)
      : call_(call),
        local_(local),
        heads_(heads),
        queries_(std::move(queries)),
        stage_keys_(std::move(stage_keys)),
        with_sinks_(with_sinks),
        rows_(length_of(queries_)),
        tiles_(call_, inputs_, shape_of(threads), held_) {
    const auto all = static_cast<std::size_t>(call.batch * (heads.last - heads.first) * rows_);
    out.resize(all * static_cast<std::size_t>(call.value_dim));
    lse.resize(all);
    merges_.reserve(all);
    const auto columns = static_cast<std::size_t>(length_of(stage_keys_));
    if (call.wants(Output::raw)) raw.resize(all * columns);
    if (call.wants(Output::capped)) capped.resize(all * columns);
    if (call.wants(Output::biased) || call.wants(Output::weights)) biased.resize(all * columns);
    for (int n = 0; n < threads; ++n) workers_.push_back(std::make_unique<Worker>(call_, tiles_.shape()));
  }

  /// Where q lies if not in the share: B, heads, queries, Dqk, dense.
  void take_queries_from(const std::vector<std::byte>& q) { own_queries_ = &q; }

  /// Forgets all parts.
  void begin() {
    failure_ = nullptr;
    merges_.clear();
    for (std::size_t row = 0; row < lse.size(); ++row) merges_.emplace_back(out_row(row));
    if (!with_sinks_ || local_.sinks.empty()) return;
    const std::vector<Real> nothing(static_cast<std::size_t>(call_.value_dim));
    each_row([&](std::int64_t h, std::size_t row) {
      merges_[row].add(std::span<const Real>(nothing), static_cast<Real>(local_.sinks[static_cast<std::size_t>(h)]));
    });
  }

  /// One more part; `progress` is called between tiles by the calling thread. After a failure it does nothing: other
  /// ranks wait for what this one passes on, so that failures are told by finish().
  void attend(const KeyPart& part, const std::function<void()>& progress) {
    try {
      std::int64_t query = 0;
      for (const PositionSpan& queries : queries_) {
        std::int64_t key = 0;
        for (const PositionSpan& keys : part.keys) {
          if (failure_) return;
          aim(queries, query, part, keys, key);
          if (local_.rank() == 0) {
            attend_spans(queries, query, part, keys, progress);
          } else {
            support::guarded(workers_.size() > 1, [&] {
              attend_spans(queries, query, part, keys, [&] { support::undisturbed(progress); });
            });
          }
          key += keys.last - keys.first;
        }
        query += queries.last - queries.first;
      }
    } catch (...) {
      failure_ = std::current_exception();
    }
  }

  /// A result over other keys, with rows as these.
  void absorb(const std::vector<Real>& other_out, const std::vector<Real>& other_lse) {
    const auto columns = static_cast<std::size_t>(call_.value_dim);
    for (std::size_t row = 0; row < lse.size(); ++row)
      add(row, std::span<const Real>(other_out).subspan(row * columns, columns), other_lse[row]);
  }

  /// Divides: `out` and `lse` are complete, or for another rank to absorb. Throws what failed in a part.
  void finish(bool complete = true) {
    for (std::size_t row = 0; row < lse.size(); ++row) {
      lse[row] = merges_[row].finish();
      if (complete && lse[row] == kNothing) std::ranges::fill(out_row(row), Real{0});
    }
    if (failure_) std::rethrow_exception(failure_);
  }

  const support::ScoreOptions<Real>& options() const { return tiles_.options(); }

  std::vector<Real> out, lse;             ///< B, heads, queries, Dv; B, heads, queries
  std::vector<Real> raw, capped, biased;  ///< B, heads, queries, stage keys, where asked for

  std::size_t workspace_bytes() const {
    return workers_.size() * tiles_.workspace_bytes() + merges_.capacity() * sizeof(Merge) +
           (out.size() + lse.size() + raw.size() + capped.size() + biased.size()) * sizeof(Real);
  }

 private:
  static constexpr Real kNothing = -std::numeric_limits<Real>::infinity();

  void add(std::size_t row, std::span<const Real> part_out, Real part_lse) {
    if (part_lse == kNothing) {
      merges_[row].add_weightless(part_out);
    } else {
      merges_[row].add(part_out, part_lse);
    }
  }

  support::TileShape shape_of(int threads) const {
    Call own = call_;
    own.query_heads = heads_.last - heads_.first;
    own.query_length = 0;
    for (const PositionSpan& span : queries_) own.query_length = std::max(own.query_length, span.last - span.first);
    return support::tile_for(own, threads, support::kPacketTile);
  }

  std::span<Real> out_row(std::size_t row) {
    const auto columns = static_cast<std::size_t>(call_.value_dim);
    return std::span(out).subspan(row * columns, columns);
  }

  std::size_t row_at(std::int64_t b, std::int64_t h, std::int64_t row) const {
    return static_cast<std::size_t>((b * (heads_.last - heads_.first) + h - heads_.first) * rows_ + row);
  }

  template <class Do>
  void each_row(const Do& act) const {
    for (std::int64_t b = 0; b < call_.batch; ++b) {
      for (std::int64_t h = heads_.first; h < heads_.last; ++h) {
        for (std::int64_t row = 0; row < rows_; ++row) act(h, row_at(b, h, row));
      }
    }
  }

  static Index4 dense(std::int64_t heads, std::int64_t rows, std::int64_t columns) {
    return {heads * rows * columns, rows * columns, columns, 1};
  }

  /// Turns the inputs to one span of queries and one of keys, which begin `query` and `key` rows into what is held.
  void aim(const PositionSpan& queries, std::int64_t query, const KeyPart& part, const PositionSpan& keys,
           std::int64_t key) {
    const auto width = static_cast<std::int64_t>(size_of(call_.dtype));
    const std::int64_t heads = heads_.last - heads_.first, groups = part.groups.last - part.groups.first;
    const std::int64_t spanned = queries.last - queries.first, in_part = length_of(part.keys);
    held_ = {heads_.first, queries.first, part.batches.first, part.groups.first, keys.first};
    const std::vector<std::byte>& q = own_queries_ ? *own_queries_ : local_.q;
    inputs_ = local_.head_inputs();
    inputs_.set(TensorId::q, {q.data() + query * call_.key_dim * width,
                              call_.dtype,
                              {call_.batch, heads, spanned, call_.key_dim},
                              dense(heads, rows_, call_.key_dim)});
    const auto cached = [&](const std::byte* data, std::int64_t columns) {
      return ConstTensor{data + key * columns * width,
                         call_.dtype,
                         {part.batches.last - part.batches.first, groups, keys.last - keys.first, columns},
                         dense(groups, in_part, columns)};
    };
    inputs_.set(TensorId::k, cached(part.k, call_.key_dim));
    inputs_.set(TensorId::v, cached(part.v, call_.value_dim));
    inputs_.remove(TensorId::sinks);  // they enter once, when parts are merged
    for (const MaskSlice& slice : local_.masks) {
      if (slice.queries != queries || keys.first < slice.keys.first || keys.last > slice.keys.last) continue;
      ConstTensor mask = slice.tensor;
      const auto element = static_cast<std::int64_t>(size_of(mask.dtype));
      mask.data = slice.bytes.data() + (keys.first - slice.keys.first) * mask.strides[3] * element;
      inputs_.set(TensorId::mask, mask);
    }
    for (const RowSlice& slice : local_.rows) {
      if (slice.queries != queries) continue;
      if (slice.block_view.data) inputs_.set(TensorId::blocks, slice.block_view);
      if (slice.keep_view.data) inputs_.set(TensorId::keep, slice.keep_view);
    }
  }

  void attend_spans(const PositionSpan& queries, std::int64_t query, const KeyPart& part, const PositionSpan& keys,
                    const std::function<void()>& progress) {
    const std::int64_t in_group = call_.heads_per_group();
    const PositionSpan heads{std::max(heads_.first, part.groups.first * in_group),
                             std::min(heads_.last, part.groups.last * in_group)};
    const std::int64_t batches = part.batches.last - part.batches.first;
    const std::int64_t all = batches * std::max<std::int64_t>(heads.last - heads.first, 0);
    const std::int64_t rows = tiles_.shape().queries, tiles = (queries.last - queries.first + rows - 1) / rows;
    const bool worth_threads =
        all * tiles > 1 && all * (queries.last - queries.first) * (keys.last - keys.first) > 4000;
#pragma omp parallel for schedule(dynamic, 1) num_threads(static_cast <int>(workers_.size())) if (worth_threads)
    for (std::int64_t task = 0; task < all * tiles; ++task) {
      try {
        const std::int64_t head = task % all, tile = tiles - 1 - task / all, first = queries.first + tile * rows;
        const std::int64_t h = heads.first + head % (heads.last - heads.first);
        const std::int64_t b = part.batches.first + head / (heads.last - heads.first);
        const std::int64_t stored = std::min(queries.last, call_.stored_queries(b)) - first;
        if (stored > 0) {
          attend_tile({b, h, h / in_group, first, std::min(rows, stored), 0, 0}, query + first - queries.first,
                      {keys.first, keys.last}, *workers_[static_cast<std::size_t>(omp_get_thread_num())]);
        }
        if (omp_get_thread_num() == 0) progress();
      } catch (...) {
#pragma omp critical
        failure_ = std::current_exception();
      }
    }
  }

  /// A tile whose first row is row `at` of those held in its batch and head.
  void attend_tile(const typename Tiles::Tile& tile, std::int64_t at, support::KeyRange keys, Worker& worker) {
    const std::size_t first = row_at(tile.b, tile.h, at);
    if (tiles_.attend(tile, keys, kNothing, worker)) {
      std::vector<Real> row(static_cast<std::size_t>(call_.value_dim));
      for (std::int64_t r = 0; r < tile.rows; ++r) {
        Real row_lse = 0;
        worker.kernel.finish(r, row.data(), &row_lse);
        if (row_lse == kNothing) worker.kernel.weightless(r, row.data());
        add(first + static_cast<std::size_t>(r), row, row_lse);
      }
    }
    if (call_.wants_scores()) keep_stages(tile, first, keys, worker);
  }

  void keep_stages(const typename Tiles::Tile& tile, std::size_t first, support::KeyRange keys, Worker& worker) {
    std::int64_t column = 0;
    for (const PositionSpan& span : stage_keys_) {
      if (keys.first >= span.first && keys.first < span.last) break;
      column += span.last - span.first;
    }
    const PositionSpan* holder = nullptr;
    for (const PositionSpan& span : stage_keys_) {
      if (keys.first >= span.first && keys.first < span.last) holder = &span;
    }
    if (!holder) return;
    const std::int64_t columns = length_of(stage_keys_);
    const auto write = [&](Output stage, std::int64_t r, std::int64_t key, std::int64_t count, const Real* scores) {
      std::vector<Real>& to = stage == Output::raw ? raw : stage == Output::capped ? capped : biased;
      if (to.empty()) return;
      const auto row = static_cast<std::int64_t>(first) + r;
      std::copy_n(scores, count, to.begin() + row * columns + column + key - holder->first);
    };
    tiles_.each_stage(tile, keys, worker, write);
  }

  const Call& call_;
  const LocalTensors& local_;
  const PositionSpan heads_;
  const Spans queries_, stage_keys_;
  const bool with_sinks_;
  const std::int64_t rows_;  ///< in each batch and head
  const std::vector<std::byte>* own_queries_ = nullptr;
  Inputs inputs_{};
  support::HeldPart held_{};
  const Tiles tiles_;
  std::vector<Merge> merges_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::exception_ptr failure_;
};

}  // namespace attest::ring
