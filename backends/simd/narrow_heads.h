// Heads of few features, whose rows are the lanes of vectors: tiles that add up features would be mostly padding. Heads
// in which a number that isn't finite shows are left to the schedule of tiles.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "backends/simd/kernels.h"
#include "backends/simd/packed_keys.h"
#include "backends/simd/worker.h"
#include "backends/support/host_results.h"
#include "backends/support/visibility.h"

namespace attest::simd {

template <class Real>
class NarrowHeads {
 public:
  /// Whether scores stay as the products leave them, and products are so short that this pays.
  static bool takes(const Call& call, const Kernels<Real>& kernels) {
    return has_plain_scores(call) && !call.mask && call.key_dim > 0 &&
           std::max(call.key_dim, call.value_dim) <= kernels.narrow_dim;
  }

  /// All outlive it.
  NarrowHeads(const Call& call, const Kernels<Real>& kernels, const support::Visibility& visibility)
      : call_(call),
        kernels_(kernels),
        visibility_(visibility),
        blocks_(support::divide_up(call.query_length, kNarrowRows)),
        failed_(static_cast<std::size_t>(units())) {
    for (std::int64_t b = 0; b < call.batch; ++b) taken_.push_back(has_intervals(b));
  }

  /// Pieces of work, which don't depend on each other.
  std::int64_t units() const { return call_.batch * call_.query_heads * blocks_; }

  void attend(const Inputs& inputs, std::int64_t unit, support::HostResults<Real>& results, Worker<Real>& worker) {
    const std::int64_t head = unit / blocks_, first = unit % blocks_ * kNarrowRows;
    const std::int64_t b = head / call_.query_heads, h = head % call_.query_heads;
    failed_[static_cast<std::size_t>(unit)] =
        !taken_[static_cast<std::size_t>(b)] || !attend_rows(inputs, b, h, first, results, worker);
  }

  /// Whether the head was left.
  bool failed(std::int64_t b, std::int64_t h) const {
    const auto first = failed_.begin() + (b * call_.query_heads + h) * blocks_;
    return std::any_of(first, first + blocks_, [](char one) { return one != 0; });
  }
  bool takes_any() const { return std::find(taken_.begin(), taken_.end(), 1) != taken_.end(); }

 private:
  /// Whether each row of a batch sees one interval of keys, and there are rows enough for vectors.
  bool has_intervals(std::int64_t b) const {
    const std::int64_t stored = call_.stored_queries(b);
    for (std::int64_t i = 0; i < stored; ++i) {
      if (!visibility_.row(b, i).prefix.empty()) return false;
    }
    return stored >= kernels_.lanes;
  }

  /// Number d of row r among those of a tile, `dim` to a row: those of a group of rows lie side by side.
  std::size_t place(std::int64_t r, std::int64_t d, std::int64_t dim) const {
    const std::int64_t group = kernels_.narrow_rows;
    return static_cast<std::size_t>(r / group * group * dim + d * group + r % group);
  }

  bool attend_rows(const Inputs& inputs, std::int64_t b, std::int64_t h, std::int64_t first,
                   support::HostResults<Real>& results, Worker<Real>& worker) {
    const std::int64_t rows = std::min(kNarrowRows, call_.stored_queries(b) - first);
    if (rows <= 0) return true;
    NarrowTile<Real> tile;
    tile.rows = PackedKeys<Real>::padded(rows, kernels_.narrow_rows);
    tile.key_dim = call_.key_dim;
    tile.value_dim = call_.value_dim;
    const support::KeyRange keys = load_rows(inputs, b, h, first, rows, tile, worker);
    KeyChunk chunk{b, h / call_.heads_per_group(), 0, 0, keys.last};
    for (chunk.first = keys.first; chunk.first < keys.last; chunk.first += chunk.count) {
      chunk.count = std::min(worker.packed.capacity(), keys.last - chunk.first);
      const auto [key_rows, value_rows] = worker.packed.rows_of_both(inputs, chunk);
      tile.keys_at = key_rows.data;
      tile.key_stride = key_rows.stride;
      tile.values_at = value_rows.data;
      tile.value_stride = value_rows.stride;
      set_intervals(chunk, tile, worker);
      kernels_.attend_narrow(tile);
    }
    return finish(results.row(b, h, first), rows, results, worker);
  }

  /// Queries, scaled, and nothing summed yet. Rows behind the last one are as that. Gives the keys that some row sees.
  support::KeyRange load_rows(const Inputs& inputs, std::int64_t b, std::int64_t h, std::int64_t first,
                              std::int64_t rows, NarrowTile<Real>& tile, Worker<Real>& worker) const {
    const auto scale = static_cast<Real>(call_.scale_value());
    support::KeyRange keys;
    worker.seen.clear();
    for (std::int64_t r = 0; r < tile.rows; ++r) {
      const std::int64_t i = first + std::min(r, rows - 1);
      if (r < rows) widen_row(kernels_, inputs.q(), b, h, i, worker.value.data(), scale);
      for (std::int64_t d = 0; d < call_.key_dim; ++d)
        worker.queries[place(r, d, call_.key_dim)] = worker.value[static_cast<std::size_t>(d)];
      worker.seen.push_back(visibility_.row(b, i));
      keys.widen(worker.seen.back().band);
    }
    std::fill_n(worker.out.begin(), tile.rows * call_.value_dim, Real{0});
    std::fill_n(worker.sum.begin(), tile.rows, Real{0});
    std::fill_n(worker.maximum.begin(), tile.rows, std::numeric_limits<Real>::lowest());
    tile.queries = worker.queries.data();
    tile.out = worker.out.data();
    tile.sum = worker.sum.data();
    tile.maximum = worker.maximum.data();
    return keys;
  }

  void set_intervals(const KeyChunk& chunk, NarrowTile<Real>& tile, Worker<Real>& worker) const {
    Real *first = worker.intervals.data(), *last = first + kNarrowRows;
    for (std::int64_t r = 0; r < tile.rows; ++r) {
      support::KeyRange band =
          worker.seen[static_cast<std::size_t>(r)].band.within(chunk.first, chunk.first + chunk.count);
      if (band.empty()) band = {chunk.first, chunk.first};
      first[r] = static_cast<Real>(band.first - chunk.first);
      last[r] = static_cast<Real>(band.last - chunk.first);
    }
    tile.first = first;
    tile.last = last;
  }

  /// False where a number is not finite: a hidden value may have got into it.
  bool finish(std::size_t row, std::int64_t rows, support::HostResults<Real>& results,
              const Worker<Real>& worker) const {
    bool finite = true;
    for (std::int64_t r = 0; r < rows; ++r, ++row) {
      const auto at = static_cast<std::size_t>(r);
      const Real sum = worker.sum[at], factor = sum == 0 ? Real{0} : Real{1} / sum;
      Real* out = results.out_row(row);
      for (std::int64_t c = 0; c < call_.value_dim; ++c) {
        out[c] = worker.out[place(r, c, call_.value_dim)] * factor;
        finite = finite && std::isfinite(out[c]);
      }
      if (call_.wants(Output::lse))
        results.lse[row] = sum == 0 ? -std::numeric_limits<Real>::infinity() : worker.maximum[at] + std::log(sum);
      finite = finite && std::isfinite(sum);
    }
    return finite;
  }

  const Call& call_;
  const Kernels<Real>& kernels_;
  const support::Visibility& visibility_;
  const std::int64_t blocks_;  ///< of a head
  std::vector<char> failed_;   ///< by unit
  std::vector<char> taken_;    ///< by batch
};

}  // namespace attest::simd
