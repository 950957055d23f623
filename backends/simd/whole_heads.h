// Heads of a few keys, each of which a kernel takes at once: what the schedule of tiles costs would be as much as their
// products. Heads in which a number that isn't finite shows are left to that schedule.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "backends/simd/kernels.h"
#include "backends/simd/packed_keys.h"
#include "backends/simd/worker.h"
#include "backends/support/host_results.h"
#include "backends/support/key_rows.h"
#include "backends/support/visibility.h"

namespace attest::simd {

template <class Real>
class WholeHeads {
 public:
  /// Whether a call's scores stay as the products leave them, but for an additive mask and keys behind each row's last.
  static bool takes(const Call& call) {
    return has_plain_scores(call) && call.key_length <= kHeadKeys &&
           (!call.mask || (call.mask->additive && call.mask->kept[3]));
  }

  /// All outlive it.
  WholeHeads(const Call& call, const Kernels<Real>& kernels, const support::Visibility& visibility)
      : call_(call), kernels_(kernels), failed_(static_cast<std::size_t>(call.batch * call.query_heads)) {
    for (std::int64_t b = 0; b < call.batch; ++b) batches_.push_back(batch_of(visibility, b));
  }

  /// Of heads [first, last), counted over all batches. What they lack afterwards: see failed().
  void attend(const Inputs& inputs, std::int64_t first, std::int64_t last, support::HostResults<Real>& results,
              Worker<Real>& worker) {
    std::int64_t loaded = -1;
    for (std::int64_t n = first; n < last; ++n) {
      const std::int64_t b = n / call_.query_heads, h = n % call_.query_heads;
      const std::int64_t group = n / call_.heads_per_group();
      failed_[static_cast<std::size_t>(n)] = !attend_head(inputs, b, h, n + 1 < last, group != loaded, results, worker);
      loaded = group;
    }
  }

  /// Whether the head was left.
  bool failed(std::int64_t b, std::int64_t h) const {
    return failed_[static_cast<std::size_t>(b * call_.query_heads + h)] != 0;
  }
  /// Heads whose rows are too few, or see keys otherwise, are never taken.
  bool takes_any() const {
    return std::any_of(batches_.begin(), batches_.end(), [](const Batch& one) { return one.rows > 0; });
  }

 private:
  struct Batch {
    std::int64_t rows = 0;           ///< that see keys, the first ones; 0: not taken
    std::vector<std::int64_t> seen;  ///< how many, by row; empty where all see the same
    std::int64_t keys = 0;           ///< that some row sees
  };

  Batch batch_of(const support::Visibility& visibility, std::int64_t b) const {
    Batch batch;
    const std::int64_t stored = call_.stored_queries(b);
    for (std::int64_t i = 0; i < stored; ++i) {
      const support::RowKeys row = visibility.row(b, i);
      if (!row.prefix.empty() || (!row.band.empty() && row.band.first != 0)) return {};
      if (row.band.empty()) break;
      batch.seen.push_back(row.band.last);
      batch.keys = std::max(batch.keys, row.band.last);
    }
    batch.rows = static_cast<std::int64_t>(batch.seen.size());
    for (std::int64_t i = batch.rows; i < stored; ++i) {
      if (!visibility.row(b, i).band.empty() || !visibility.row(b, i).prefix.empty()) return {};
    }
    if (batch.rows < std::max(kernels_.rows, kFewRows + 1)) return {};
    if (std::count(batch.seen.begin(), batch.seen.end(), batch.keys) == batch.rows) batch.seen.clear();
    return batch;
  }

  bool attend_head(const Inputs& inputs, std::int64_t b, std::int64_t h, bool more, bool load,
                   support::HostResults<Real>& results, Worker<Real>& worker) {
    const Batch& batch = batches_[static_cast<std::size_t>(b)];
    if (batch.rows == 0) return false;
    const KeyChunk chunk{b, h / call_.heads_per_group(), 0, batch.keys, batch.keys};
    WholeHead<Real> head;
    head.rows = batch.rows;
    head.keys = batch.keys;
    head.key_dim = call_.key_dim;
    head.value_dim = call_.value_dim;
    head.seen = batch.seen.empty() ? nullptr : batch.seen.data();
    head.scale = static_cast<Real>(call_.scale_value());
    if (load) worker.packed.load_keys(inputs, chunk);
    Tile<Real> tile;
    worker.packed.aim(tile, 0);
    head.keys_packed = tile.keys_packed;
    if (!set_values(inputs, chunk, load, worker, head)) return false;
    if (!set_mask(inputs, b, h, head)) return false;
    set_queries(inputs, b, h, worker, head);
    if (more) set_next(inputs, b, h, batch, head);
    const std::size_t row = results.row(b, h, 0);
    head.weights = worker.head_weights.data();
    head.out = results.out_row(row);
    Real* lse = results.lse.data() + row;
    head.lse = call_.wants(Output::lse) ? lse : nullptr;
    const std::int64_t stored = call_.stored_queries(b);
    std::fill_n(head.out + batch.rows * call_.value_dim, (stored - batch.rows) * call_.value_dim, Real{0});
    std::fill_n(lse + batch.rows, stored - batch.rows, -std::numeric_limits<Real>::infinity());
    return kernels_.attend_head(head);
  }

  /// Where they lie, if vectors that are read there lie in one line each.
  bool set_values(const Inputs& inputs, const KeyChunk& chunk, bool load, Worker<Real>& worker,
                  WholeHead<Real>& head) const {
    const support::Rows<Real> rows = worker.packed.rows_at(inputs, chunk, Cache::values);
    constexpr auto kOfLine = static_cast<std::int64_t>(64 / sizeof(Real));
    const bool in_lines = reinterpret_cast<std::uintptr_t>(rows.data) % 64 == 0 && rows.stride % kOfLine == 0;
    if (in_lines && call_.value_dim % kernels_.lanes == 0) {
      head.values = rows.data;
      head.value_stride = rows.stride;
      return true;
    }
    if (load) worker.packed.load_values(inputs, chunk);
    Tile<Real> tile;
    worker.packed.aim(tile, 0);
    head.values = tile.values;
    head.values_packed = true;
    return worker.packed.suspects().empty();
  }

  bool set_mask(const Inputs& inputs, std::int64_t b, std::int64_t h, WholeHead<Real>& head) const {
    const ConstTensor* mask = inputs.mask();
    if (!mask) return true;
    constexpr DType kSame = sizeof(Real) == 8 ? DType::f64 : DType::f32;
    if (mask->dtype != kSame || mask->strides[3] != 1) return false;
    head.mask = static_cast<const Real*>(mask->data) + mask->offset(b, h, 0, 0);
    head.mask_stride = mask->strides[2];
    return true;
  }

  void set_queries(const Inputs& inputs, std::int64_t b, std::int64_t h, Worker<Real>& worker,
                   WholeHead<Real>& head) const {
    if (const auto rows = support::rows_in_place<Real>(inputs.q(), b, h, 0)) {
      head.queries = rows->data;
      head.query_stride = rows->stride;
      return;
    }
    for (std::int64_t i = 0; i < head.rows; ++i)
      widen_row(kernels_, inputs.q(), b, h, i, worker.queries.data() + i * call_.key_dim);
    head.queries = worker.queries.data();
    head.query_stride = call_.key_dim;
  }

  /// The queries of the next head, and the keys and values of the next group.
  void set_next(const Inputs& inputs, std::int64_t b, std::int64_t h, const Batch& batch, WholeHead<Real>& head) const {
    if (++h == call_.query_heads) {
      h = 0;
      ++b;
    }
    const auto fetch = [&](const ConstTensor& t, std::int64_t at_head, std::int64_t rows, std::size_t n) {
      const auto in_place = support::rows_in_place<Real>(t, b, at_head, 0);
      if (!in_place || in_place->stride != t.shape[3]) return;
      head.next[n] = {reinterpret_cast<const char*>(in_place->data),
                      rows * in_place->stride * static_cast<std::int64_t>(sizeof(Real))};
    };
    fetch(inputs.q(), h, batch.rows, 0);
    if (h % call_.heads_per_group() != 0 || inputs.past_k().data) return;
    fetch(inputs.k(), h / call_.heads_per_group(), batch.keys, 1);
    fetch(inputs.v(), h / call_.heads_per_group(), batch.keys, 2);
  }

  const Call& call_;
  const Kernels<Real>& kernels_;
  std::vector<Batch> batches_;
  std::vector<char> failed_;  ///< by head of each batch
};

}  // namespace attest::simd
