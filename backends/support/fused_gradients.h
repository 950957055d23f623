// Gradients of fused attention on host threads: tiles of queries against tiles of keys, whose weights are exp(s - lse)
// once more. No score matrix is ever held. A task owns the dk and dv of its keys; where keys of one head are cut into
// several tasks, each has a dq of its own, and these are summed in their order.
//
// What a backend brings is a Kernel, a copy for each thread, that does the arithmetic on dense tiles in its library's
// way. Columns of all matrices are padded to kGradientStep with zeros, and rows of a tile of keys with room for as
// many:
//
//   void read(tensor, b, h, l, factor, Real* to)            a row times a factor
//   void pack_turned(Rows<Real>, keys, dim, Real* to)       keys <= kGradientTile; room for a whole tile
//   void pack(Rows<Real>, keys, dim, Real* to)
//   void multiply(left, rows, dim, turned, keys, out)       out = left * turned; left dense, out kGradientTile apart
//   void add(weights, rows, keys, packed, dim, out)         out += weights * packed; out dense
//   void add_turned(weights, rows, keys, right, dim, out)   out += weights^T * right; both dense
//   void weigh(scores, products, n, lse, shift)             p = exp(s - lse), then p * (product + shift); both 0 where
//                                                           s is -inf, whatever the others are
//   void tanh_row(Real*, n)                                 in place
//
// `weights` are rows of kGradientTile; `rows` is at most kGradientTile, with room for whole tiles everywhere.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <memory>
#include <vector>

#include "backends/support/aligned.h"
#include "backends/support/gradient_rows.h"
#include "backends/support/gradient_tasks.h"
#include "backends/support/host_results.h"
#include "backends/support/host_threads.h"
#include "backends/support/key_place.h"
#include "backends/support/score_options.h"
#include "backends/support/tiles.h"
#include "reference/call/call.h"
#include "reference/call/tensor_table.h"

namespace attest::support {

inline constexpr std::int64_t kGradientTile = 64, kGradientStep = 16;

inline std::int64_t padded_columns(std::int64_t n) { return divide_up(n, kGradientStep) * kGradientStep; }

template <class Real, class Kernel>
class FusedGradients {
 public:
  /// All outlive it; inputs may change. With pass=both, results have o and lse when it runs.
  FusedGradients(const Call& call, const Inputs& inputs, HostResults<Real>& results, int threads, const Kernel& kernel)
      : call_(call),
        inputs_(inputs),
        results_(results),
        options_(call, inputs),
        rows_(call, inputs, options_, results),
        tasks_(make_gradient_tasks(call, kGradientTile)),
        threads_(threads, static_cast<std::int64_t>(tasks_.list.size()), dense_multiply_adds(call)),
        key_dim_(padded_columns(call.key_dim)),
        value_dim_(padded_columns(call.value_dim)) {
    const std::int64_t bytes = static_cast<std::int64_t>(sizeof(Real)) * 3 * (key_dim_ + value_dim_);
    chunk_ = std::clamp(kCacheBytes / bytes / kGradientTile, std::int64_t{1}, std::int64_t{8}) * kGradientTile;
    chunk_ = std::min(chunk_, std::max(divide_up(call.key_length, kGradientTile), std::int64_t{1}) * kGradientTile);
    partial_dq_.resize(results.dq.size() * static_cast<std::size_t>(tasks_.parts - 1));
    for (std::int64_t n = 0; n < threads_.workers(); ++n)
      workers_.push_back(std::make_unique<Worker>(kernel, chunk_, key_dim_, value_dim_));
  }

  void run() {
    std::fill(results_.dmask.begin(), results_.dmask.end(), Real{0});
    const std::int64_t heads = call_.batch * call_.query_heads;
    threads_.each(heads, [this](std::int64_t head, std::size_t worker) {
      Worker& w = *workers_[worker];
      const auto read = [&w](const ConstTensor& t, std::int64_t b, std::int64_t h, std::int64_t i, Real* to) {
        w.kernel.read(t, b, h, i, Real{1}, to);
      };
      rows_.prepare(head / call_.query_heads, head % call_.query_heads, read, w.q.data(), w.dout.data());
    });
    threads_.each(static_cast<std::int64_t>(tasks_.list.size()), [this](std::int64_t n, std::size_t worker) {
      const GradientTask& task = tasks_.list[static_cast<std::size_t>(n)];
      for (std::int64_t head = task.first; head < task.last; ++head)
        differentiate(task, head / call_.key_heads, head % call_.key_heads, *workers_[worker]);
    });
    if (tasks_.parts > 1) threads_.each(heads, [this](std::int64_t head, std::size_t) { add_parts(head); });
    for (std::size_t h = 0; h < results_.dsinks.size(); ++h)
      results_.dsinks[h] = rows_.sink_gradient(static_cast<std::int64_t>(h));
  }

  std::size_t workspace_bytes() const {
    std::size_t numbers = partial_dq_.size();
    for (const auto& worker : workers_) numbers += worker->numbers();
    return numbers * sizeof(Real);
  }

 private:
  static constexpr std::int64_t kCacheBytes = 384
                                              << 10;  ///< of a chunk's operands and sums: a part of the second level

  struct Worker {
    Worker(const Kernel& arithmetic, std::int64_t chunk, std::int64_t key_dim, std::int64_t value_dim)
        : kernel(arithmetic) {
      const auto allocate = [](std::int64_t rows, std::int64_t columns, std::initializer_list<Aligned<Real>*> lists) {
        for (Aligned<Real>* list : lists) list->resize(static_cast<std::size_t>(rows * columns));
      };
      allocate(chunk, key_dim, {&keys, &keys_turned, &keys_packed, &dk});
      allocate(chunk, value_dim, {&values, &values_turned, &dv});
      allocate(kGradientTile, key_dim, {&q, &dq});
      allocate(kGradientTile, value_dim, {&dout});
      allocate(kGradientTile, kGradientTile, {&weights, &products, &kept});
      allocate(1, kGradientTile, {&slopes});
      allocate(1, std::max(key_dim, value_dim), {&odd_q, &odd_k, &odd_dout, &odd_v});
    }
    std::size_t numbers() const {
      return 4 * keys.size() + 3 * values.size() + 2 * q.size() + dout.size() + 3 * weights.size();
    }

    Kernel kernel;
    Aligned<Real> keys, keys_turned, keys_packed, dk;  ///< of a chunk
    Aligned<Real> values, values_turned, dv;
    Aligned<Real> q, dq, dout;              ///< of a tile of rows; q is scaled
    Aligned<Real> weights, products, kept;  ///< of a tile: P, then dS and dT, and P after dropout
    Aligned<Real> slopes;                   ///< of a row: what the cap leaves of a derivative
    Aligned<Real> odd_q, odd_k, odd_dout, odd_v;
    std::vector<std::int64_t> odd_keys;  ///< of a chunk: k or v are not finite
  };

  /// Keys [first, first + count) of a head, and where their tensors lie.
  struct Chunk {
    std::int64_t b, group, first, count;
  };
  /// Rows [row, row + rows) of a head of the chunk's group.
  struct Tile {
    std::int64_t h, row, rows;
  };

  void differentiate(const GradientTask& task, std::int64_t b, std::int64_t group, Worker& w) {
    const std::int64_t head = b * call_.key_heads + group, queries = call_.stored_queries(b);
    const auto clear = [&](std::vector<Real>& list, std::int64_t columns) {
      std::fill_n(list.data() + (head * call_.key_length + task.keys.first) * columns,
                  (task.keys.last - task.keys.first) * columns, Real{0});
    };
    clear(results_.dk, call_.key_dim);
    clear(results_.dv, call_.value_dim);
    const std::int64_t first_head = group * call_.heads_per_group(), end_head = first_head + call_.heads_per_group();
    std::fill_n(dq_row(task.part, results_.row(b, first_head, 0)),
                call_.heads_per_group() * call_.query_length * call_.key_dim, Real{0});
    const std::int64_t end = std::min(task.keys.last, call_.stored_keys(b));
    for (Chunk chunk{b, group, task.keys.first, 0}; chunk.first < end; chunk.first += chunk_) {
      chunk.count = std::min(chunk_, end - chunk.first);
      bool loaded = false;
      for (std::int64_t h = first_head; h < end_head; ++h) {
        for (Tile rows{h, 0, 0}; rows.row < queries; rows.row += kGradientTile) {
          rows.rows = std::min(kGradientTile, queries - rows.row);
          const KeyRange seen = seen_by(b, rows).within(chunk.first, chunk.first + chunk.count);
          if (seen.empty() || !options_.visibility().any_block(b, h, rows.row, rows.rows, seen)) continue;
          if (!loaded) load_keys(chunk, w);
          loaded = true;
          differentiate_rows(chunk, rows, seen, dq_row(task.part, results_.row(b, h, rows.row)), w);
        }
      }
      if (loaded) store_keys(chunk, w);
    }
  }

  /// Keys that at least one of the rows sees, before masks and blocks.
  KeyRange seen_by(std::int64_t b, const Tile& rows) const {
    KeyRange some;
    for (std::int64_t i = rows.row; i < rows.row + rows.rows; ++i) {
      some.widen(rows_.seen(b, i).prefix);
      some.widen(rows_.seen(b, i).band);
    }
    return some;
  }

  void load_keys(const Chunk& chunk, Worker& w) const {
    w.odd_keys.clear();
    for (std::int64_t j = 0; j < chunk.count; ++j) {
      Real *k = w.keys.data() + j * key_dim_, *v = w.values.data() + j * value_dim_;
      read_key(chunk, j, w, k, v);
      if (!has_non_finite<Real>({k, 0}, 1, call_.key_dim) && !has_non_finite<Real>({v, 0}, 1, call_.value_dim))
        continue;
      // A hidden key has weight 0, and 0 * NaN would leak.
      w.odd_keys.push_back(j);
      std::fill_n(k, key_dim_, Real{0});
      std::fill_n(v, value_dim_, Real{0});
    }
    for (std::int64_t j = 0; j < chunk.count; j += kGradientTile) {
      const std::int64_t keys = std::min(kGradientTile, chunk.count - j);
      const Rows<Real> k{w.keys.data() + j * key_dim_, key_dim_}, v{w.values.data() + j * value_dim_, value_dim_};
      w.kernel.pack_turned(k, keys, key_dim_, w.keys_turned.data() + j * key_dim_);
      w.kernel.pack(k, keys, key_dim_, w.keys_packed.data() + j * key_dim_);
      w.kernel.pack_turned(v, keys, value_dim_, w.values_turned.data() + j * value_dim_);
    }
    std::fill(w.dk.begin(), w.dk.end(), Real{0});
    std::fill(w.dv.begin(), w.dv.end(), Real{0});
  }

  void read_key(const Chunk& chunk, std::int64_t j, Worker& w, Real* k, Real* v) const {
    const KeyPlace place = find_key(inputs_, chunk.b, chunk.first + j);
    w.kernel.read(tensor_of(inputs_, place, Cache::keys), place.batch, chunk.group, place.row, Real{1}, k);
    w.kernel.read(tensor_of(inputs_, place, Cache::values), place.batch, chunk.group, place.row, Real{1}, v);
  }

  void store_keys(const Chunk& chunk, const Worker& w) {
    const std::int64_t row = (chunk.b * call_.key_heads + chunk.group) * call_.key_length + chunk.first;
    for (std::int64_t j = 0; j < chunk.count; ++j) {
      std::copy_n(w.dk.data() + j * key_dim_, call_.key_dim, results_.dk.data() + (row + j) * call_.key_dim);
      std::copy_n(w.dv.data() + j * value_dim_, call_.value_dim, results_.dv.data() + (row + j) * call_.value_dim);
    }
  }

  /// The rows against what they see of the chunk.
  void differentiate_rows(const Chunk& chunk, const Tile& rows, const KeyRange& seen, Real* dq, Worker& w) {
    const auto scale = static_cast<Real>(call_.scale_value());
    bool odd = false;
    for (std::int64_t r = 0; r < rows.rows; ++r) {
      Real *q = w.q.data() + r * key_dim_, *dout = w.dout.data() + r * value_dim_;
      if (rows_.is_finite(results_.row(chunk.b, rows.h, rows.row + r))) {
        w.kernel.read(inputs_.q(), chunk.b, rows.h, rows.row + r, scale, q);
        w.kernel.read(inputs_.dout(), chunk.b, rows.h, rows.row + r, Real{1}, dout);
      } else {
        odd = true;
        std::fill_n(q, key_dim_, Real{0});
        std::fill_n(dout, value_dim_, Real{0});
      }
    }
    std::fill_n(w.dq.data(), rows.rows * key_dim_, Real{0});
    for (std::int64_t j = (seen.first - chunk.first) / kGradientTile * kGradientTile; j < seen.last - chunk.first;
         j += kGradientTile) {
      const std::int64_t keys = std::min(kGradientTile, chunk.count - j), first = chunk.first + j;
      if (options_.visibility().any_block(chunk.b, rows.h, rows.row, rows.rows, {first, first + keys}))
        differentiate_tile(chunk, rows, j, keys, w);
    }
    if (odd || !w.odd_keys.empty()) add_odd(chunk, rows, seen, w);
    for (std::int64_t r = 0; r < rows.rows; ++r, dq += call_.key_dim) {
      for (std::int64_t d = 0; d < call_.key_dim; ++d)
        dq[d] += scale * w.dq[static_cast<std::size_t>(r * key_dim_ + d)];
    }
  }

  void differentiate_tile(const Chunk& chunk, const Tile& rows, std::int64_t j, std::int64_t keys, Worker& w) {
    w.kernel.multiply(w.q.data(), rows.rows, key_dim_, w.keys_turned.data() + j * key_dim_, keys, w.weights.data());
    w.kernel.multiply(w.dout.data(), rows.rows, value_dim_, w.values_turned.data() + j * value_dim_, keys,
                      w.products.data());
    Real* kept_weights = options_.drops() ? w.kept.data() : w.weights.data();
    for (std::int64_t r = 0; r < rows.rows; ++r) {
      const std::int64_t i = rows.row + r, at = r * kGradientTile;
      Real *weights = w.weights.data() + at, *products = w.products.data() + at, *kept = kept_weights + at;
      if (rows_.is_finite(results_.row(chunk.b, rows.h, i))) {
        const ScoreRow scores{chunk.b, rows.h, i, chunk.first + j, keys};
        bias(scores, weights, w);
        for (const std::int64_t odd : w.odd_keys) {
          if (odd >= j && odd < j + keys) weights[odd - j] = -std::numeric_limits<Real>::infinity();
        }
        weigh(scores, weights, products, kept, w);
      } else {
        std::fill_n(kept, kGradientTile, Real{0});
        std::fill_n(products, kGradientTile, Real{0});
      }
    }
    w.kernel.add_turned(kept_weights, rows.rows, keys, w.dout.data(), value_dim_, w.dv.data() + j * value_dim_);
    w.kernel.add_turned(w.products.data(), rows.rows, keys, w.q.data(), key_dim_, w.dk.data() + j * key_dim_);
    w.kernel.add(w.products.data(), rows.rows, keys, w.keys_packed.data() + j * key_dim_, key_dim_, w.dq.data());
  }

  /// Raw scores of a row to biased ones, -inf where hidden and up to whole steps.
  void bias(const ScoreRow& at, Real* scores, Worker& w) const {
    if (call_.softcap) {
      options_.cap(at, scores, [&w](Real* numbers, std::int64_t n) { w.kernel.tanh_row(numbers, n); });
      const auto cap = static_cast<Real>(*call_.softcap);
      for (std::int64_t n = 0; n < at.keys; ++n) {
        const Real tanh = scores[n] / cap;
        w.slopes[static_cast<std::size_t>(n)] = 1 - tanh * tanh;
      }
    }
    options_.bias(at, rows_.seen(at.b, at.i), scores);
    std::fill(scores + at.keys, scores + padded_columns(at.keys), -std::numeric_limits<Real>::infinity());
  }

  /// Biased scores of a row become weights, `kept` those after dropout (without it the same row), and products dT.
  void weigh(const ScoreRow& at, Real* scores, Real* products, Real* kept, Worker& w) {
    const std::size_t row = results_.row(at.b, at.h, at.i);
    const std::int64_t whole = padded_columns(at.keys);
    if (options_.drops()) options_.drop(at, products);
    w.kernel.weigh(scores, products, whole, rows_.lse(row), rows_.shift(row));
    if (options_.drops()) {
      std::copy_n(scores, whole, kept);
      options_.drop(at, kept);
    }
    if (!results_.dmask.empty()) add_to_mask(at, products);
    for (std::int64_t n = 0; call_.softcap && n < at.keys; ++n) {
      if (products[n] != 0) products[n] *= w.slopes[static_cast<std::size_t>(n)];
    }
  }

  /// dS to the elements of the mask as it is stored, one for all indices of a broadcast axis.
  void add_to_mask(const ScoreRow& at, const Real* gradients) {
    const auto& kept = call_.mask->kept;
    const Index4 n = stored_shape(call_, TensorId::mask);
    const std::int64_t row =
        (((kept[0] ? at.b : 0) * n[1] + (kept[1] ? at.h : 0)) * n[2] + (kept[2] ? at.i : 0)) * n[3];
    Real* to = results_.dmask.data() + row + (kept[3] ? at.key : 0);
    for (std::int64_t j = 0; j < at.keys; ++j) to[kept[3] ? j : 0] += gradients[j];
  }

  /// Pairs of a row or a key that is not finite, one by one where the row sees the key.
  void add_odd(const Chunk& chunk, const Tile& rows, const KeyRange& seen, Worker& w) {
    for (std::int64_t r = 0; r < rows.rows; ++r) {
      const std::int64_t i = rows.row + r;
      if (rows_.is_finite(results_.row(chunk.b, rows.h, i))) {
        for (const std::int64_t j : w.odd_keys) add_pair(chunk, rows, r, j, w);
      } else {
        for (std::int64_t j = seen.first - chunk.first; j < seen.last - chunk.first; ++j)
          add_pair(chunk, rows, r, j, w);
      }
    }
  }

  void add_pair(const Chunk& chunk, const Tile& rows, std::int64_t r, std::int64_t j, Worker& w) {
    const std::int64_t i = rows.row + r;
    const ScoreRow at{chunk.b, rows.h, i, chunk.first + j, 1};
    if (!options_.visibility().sees(at.b, at.h, i, rows_.seen(at.b, i), at.key)) return;
    Real *q = w.odd_q.data(), *dout = w.odd_dout.data(), *k = w.odd_k.data(), *v = w.odd_v.data();
    w.kernel.read(inputs_.q(), at.b, at.h, i, static_cast<Real>(call_.scale_value()), q);
    w.kernel.read(inputs_.dout(), at.b, at.h, i, Real{1}, dout);
    read_key(chunk, j, w, k, v);
    Real weights[kGradientStep] = {}, products[kGradientStep] = {}, kept[kGradientStep] = {};
    *weights = GradientRows<Real>::dot(q, k, call_.key_dim);
    *products = GradientRows<Real>::dot(dout, v, call_.value_dim);
    bias(at, weights, w);
    weigh(at, weights, products, options_.drops() ? kept : weights, w);
    const auto add = [](Real factor, const Real* from, std::int64_t n, Real* to) {
      for (std::int64_t d = 0; d < n; ++d) to[d] += factor * from[d];
    };
    add(options_.drops() ? *kept : *weights, dout, call_.value_dim, w.dv.data() + j * value_dim_);
    add(*products, q, call_.key_dim, w.dk.data() + j * key_dim_);
    add(*products, k, call_.key_dim, w.dq.data() + r * key_dim_);
  }

  Real* dq_row(std::int64_t part, std::size_t row) {
    const std::size_t at = row * static_cast<std::size_t>(call_.key_dim);
    return part == 0 ? results_.dq.data() + at
                     : partial_dq_.data() + static_cast<std::size_t>(part - 1) * results_.dq.size() + at;
  }

  void add_parts(std::int64_t head) {
    const std::int64_t numbers = call_.query_length * call_.key_dim;
    const auto first = static_cast<std::size_t>(head * call_.query_length);
    Real* to = dq_row(0, first);
    for (std::int64_t part = 1; part < tasks_.parts; ++part) {
      const Real* from = dq_row(part, first);
      for (std::int64_t n = 0; n < numbers; ++n) to[n] += from[n];
    }
  }

  const Call& call_;
  const Inputs& inputs_;
  HostResults<Real>& results_;
  const ScoreOptions<Real> options_;
  GradientRows<Real> rows_;
  const GradientTasks tasks_;
  const HostThreads threads_;
  const std::int64_t key_dim_, value_dim_;  ///< padded
  std::int64_t chunk_ = 0;
  std::vector<Real> partial_dq_;  ///< those of parts behind the first, part by part
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace attest::support
