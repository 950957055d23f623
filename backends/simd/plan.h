// The schedule of backends/simd: tasks on host threads, chunks of keys packed once for all rows of a task, and tiles of
// them for one block of rows after another, with an online softmax. No score matrix is ever held.
//
// Tiles that nobody sees are skipped; between the steps of those that all rows see whole nothing is done. A few rows
// alone read keys and values where they lie. Gradients have a schedule of their own
// (backends/support/fused_gradients.h).
#pragma once

#include <bit>
#include <cmath>
#include <iterator>
#include <memory>
#include <optional>
#include <type_traits>
#include <vector>

#include "backends/backend.h"
#include "backends/simd/gradients.h"
#include "backends/simd/narrow_heads.h"
#include "backends/simd/packed_keys.h"
#include "backends/simd/partial_rows.h"
#include "backends/simd/tasks.h"
#include "backends/simd/whole_heads.h"
#include "backends/simd/worker.h"
#include "backends/support/host_results.h"
#include "backends/support/host_threads.h"
#include "backends/support/score_options.h"
#include "backends/support/score_stages.h"
#include "reference/call/call.h"

namespace attest::simd {

template <class Real>
class SimdPlan : public Plan {
 public:
  SimdPlan(const Call& call, const Kernels<Real>& kernels, int threads)
      : call_(call),
        kernels_(kernels),
        pairs_(kernels.takes_pairs && is_of_pairs(call)),
        block_(kBlockRows / kernels.rows * kernels.rows),
        results_(call),
        options_(call_, inputs_),
        tasks_(call.runs_forward() ? make_tasks(call_, options_.visibility(), block_, threads) : std::vector<Task>()),
        threads_(threads, static_cast<std::int64_t>(tasks_.size()), dense_multiply_adds(call)) {
    std::int64_t rows = 0, partial_rows = 0;
    for (const Task& task : tasks_) {
      rows = std::max(rows, task.rows);
      if (task.parts > 1) partial_rows = std::max(partial_rows, task.partial + task.rows);
      if (task.part == 0 && task.parts > 1) split_.push_back(task);
    }
    if (!pairs_ && WholeHeads<Real>::takes(call)) heads_.emplace(call_, kernels_, options_.visibility());
    if (heads_ && !heads_->takes_any()) heads_.reset();
    if (heads_) rows = std::max(rows, call.query_length);
    if (!heads_ && !pairs_ && NarrowHeads<Real>::takes(call, kernels))
      narrow_.emplace(call_, kernels_, options_.visibility());
    if (narrow_ && !narrow_->takes_any()) narrow_.reset();
    if (narrow_) rows = std::max(rows, kNarrowRows);
    chunk_ = kCacheBytes / (pairs_ ? 2 : static_cast<std::int64_t>(sizeof(Real))) / (call.key_dim + call.value_dim);
    chunk_ = std::clamp(chunk_ / kTileKeys * kTileKeys, kTileKeys, std::int64_t{512});
    partials_.emplace(partial_rows, call.value_dim);
    for (std::int64_t n = 0; n < threads_.workers(); ++n)
      workers_.push_back(std::make_unique<Worker>(call_, kernels_, rows, block_, chunk_, pairs_));
    if (call.wants_gradients()) gradients_.emplace(call_, inputs_, results_, threads, SimdGradients<Real>(kernels));
  }

  void upload(const Inputs& inputs) override {
    uploaded_ = inputs_ = inputs;
    const ConstTensor* mask = inputs_.mask();
    masks_in_kernel_ = mask && options_.none_but_mask() && mask->strides[3] == 1 && kernels_.reads_mask(mask->dtype);
  }

  void run() override {
    // Gradients read their operands in their own way.
    if (call_.has_stored_scales() && call_.wants_gradients()) {
      inputs_ = prepared_.of(call_, uploaded_);
      inputs_.remove(TensorId::q_scales);
    }
    if (narrow_)
      threads_.each(narrow_->units(), [this](std::int64_t unit, std::size_t worker) {
        narrow_->attend(inputs_, unit, results_, *workers_[worker]);
      });
    else if (heads_)
      attend_heads();
    threads_.each(std::ssize(tasks_), [this](std::int64_t task, std::size_t worker) {
      if (is_left(tasks_[static_cast<std::size_t>(task)]))
        attend(tasks_[static_cast<std::size_t>(task)], *workers_[worker]);
    });
    threads_.each(std::ssize(split_), [this](std::int64_t task, std::size_t) {
      const Task& first = split_[static_cast<std::size_t>(task)];
      if (is_left(first)) put_together(first);
    });
    if (gradients_) gradients_->run();
  }

  void download(const Outputs& outputs) override { results_.download(inputs_, outputs); }

  std::size_t workspace_bytes() const override {
    std::size_t bytes = partials_->bytes() + prepared_.bytes() + (gradients_ ? gradients_->workspace_bytes() : 0);
    for (const auto& worker : workers_) bytes += worker->bytes();
    return bytes;
  }

 private:
  static constexpr std::int64_t kBlockRows = 64;
  static constexpr std::int64_t kCacheBytes = 256 << 10;  ///< of a chunk's keys and values: a part of the second level

  static constexpr std::int64_t kMemoryBytes = 4 << 20;  ///< of keys and values: no second level is larger

  using Worker = simd::Worker<Real>;

  static std::int64_t bytes_of_keys(const Call& call) {
    const auto width = call.key_dim * static_cast<std::int64_t>(size_of(type_of(call, TensorId::k))) +
                       call.value_dim * static_cast<std::int64_t>(size_of(type_of(call, TensorId::v)));
    return call.batch * call.key_heads * call.key_length * width;
  }

  void attend_heads() {
    constexpr std::int64_t kBlocksOfWorker = 8;
    const std::int64_t heads = call_.batch * call_.query_heads;
    const std::int64_t together = std::max<std::int64_t>(heads / (kBlocksOfWorker * threads_.workers()), 1);
    threads_.each(support::divide_up(heads, together), [&](std::int64_t block, std::size_t worker) {
      heads_->attend(inputs_, block * together, std::min((block + 1) * together, heads), results_, *workers_[worker]);
    });
  }

  /// Whether some of the task's heads were not taken whole.
  bool is_left(const Task& task) const {
    if (!heads_ && !narrow_) return true;
    const std::int64_t last = row_of(call_, task, task.rows - 1).h;
    for (std::int64_t h = row_of(call_, task, 0).h; h <= last; ++h) {
      if (narrow_ ? narrow_->failed(task.b, h) : heads_->failed(task.b, h)) return true;
    }
    return false;
  }

  void attend(const Task& task, Worker& worker) {
    load_rows(task, worker);
    KeyChunk chunk{task.b, task.group, 0, 0, task.keys.last};
    const std::int64_t step = is_few(task) ? kTileKeys : chunk_;
    for (chunk.first = task.keys.first; chunk.first < task.keys.last; chunk.first += step) {
      chunk.count = std::min(step, task.keys.last - chunk.first);
      bool loaded = false;
      for (std::int64_t row = 0; row < task.rows; row += block_) {
        const BlockKeys& seen = worker.blocks[static_cast<std::size_t>(row / block_)];
        const support::KeyRange range = seen.some.within(chunk.first, chunk.first + chunk.count);
        for (std::int64_t key = (range.first - chunk.first) / kTileKeys * kTileKeys; key < range.last - chunk.first;
             key += kTileKeys) {
          const std::int64_t keys = std::min(kTileKeys, chunk.count - key);
          if (!any_block(task, row, {chunk.first + key, chunk.first + key + keys})) continue;
          if (!loaded) {  // a chunk of keys that nobody sees is not even read
            load(task, chunk, worker);
            loaded = true;
          }
          attend_tile(task, row, chunk, key, keys, worker);
        }
      }
    }
    if (task.parts > 1)
      keep_partial(task, worker);
    else
      for (std::int64_t r = 0; r < task.rows; ++r) finish(task, r, worker);
    if (call_.wants_scores()) write_stages(task, worker);
  }

  /// Whether keys are read where they lie.
  static bool is_few(const Task& task) { return task.few; }

  /// n rows from the first of a block on, and what the kernels need besides.
  std::int64_t padded_rows(const Task& task, std::int64_t n) const {
    if (is_few(task)) return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(n)));
    const std::int64_t rest = n % block_;
    return rest == 0 ? n : n - rest + std::max(kLeastRows, PackedKeys<Real>::padded(rest, kernels_.rows_step));
  }

  void load(const Task& task, const KeyChunk& chunk, Worker& worker) const {
    if (is_few(task)) return worker.packed.point_at(inputs_, chunk);
    if (pairs_) {
      worker.pairs->packed.load_keys(inputs_, chunk);
      worker.pairs->packed.load_values(inputs_, chunk);
    } else {
      worker.packed.load_keys(inputs_, chunk);
      worker.packed.load_values(inputs_, chunk);
    }
  }

  /// The loaded chunk's keys from `key` on, into a tile.
  void aim(const Task& task, std::int64_t row, std::int64_t key, Tile<Real>& tile, Worker& worker) const {
    if constexpr (std::is_same_v<Real, float>) {
      if (pairs_) {
        PairTile& pairs = worker.pairs->tile;
        pairs.queries = worker.pairs->queries.data() + row * pairs.query_stride;
        if (!is_few(task)) return worker.pairs->packed.aim(tile, pairs, key);
        worker.packed.aim(tile, key);
        if (tile.stored == DType::bf16) tile.pairs = &pairs;  // else they were copied
        return;
      }
    }
    worker.packed.aim(tile, key);
  }

  const std::vector<std::int64_t>& suspects(const Task& task, const Worker& worker) const {
    return pairs_ && !is_few(task) ? worker.pairs->packed.suspects() : worker.packed.suspects();
  }

  /// Queries, scaled; the state of their rows; what they see.
  void load_rows(const Task& task, Worker& worker) const {
    const auto scale = static_cast<Real>(call_.scale_value());
    const std::int64_t dim = call_.key_dim, padded = padded_rows(task, task.rows);
    worker.places.clear();
    worker.seen.clear();
    worker.mask_rows.clear();
    worker.blocks.clear();
    std::fill_n(worker.out.begin(), padded * worker.packed.columns(), Real{0});
    std::fill_n(worker.sum.begin(), padded * kernels_.lanes, Real{0});
    std::fill_n(worker.maximum.begin(), padded, std::numeric_limits<Real>::lowest());
    std::fill(worker.queries.begin() + task.rows * dim, worker.queries.begin() + padded * dim, Real{0});
    if (pairs_) {
      support::Aligned<Pair>& pairs = worker.pairs->queries;
      const std::int64_t stride = worker.pairs->tile.query_stride;
      std::fill(pairs.begin() + task.rows * stride, pairs.begin() + padded * stride, Pair{0});
    }
    const std::int64_t stored = call_.stored_queries(task.b);
    TaskRow at = row_of(call_, task, 0);
    for (std::int64_t r = 0; r < task.rows; ++r, ++at.i) {
      if (at.i == stored) at = {at.h + 1, 0};
      if (pairs_)
        copy_row(inputs_.q(), task.b, at.h, at.i, worker.pairs->queries.data() + r * worker.pairs->tile.query_stride);
      if (!pairs_ || is_few(task)) load_query(task.b, at, scale, worker.queries.data() + r * dim);
      const Real sink = options_.sink(at.h);
      // A sink is a key without a value: it starts the maximum and the sum.
      if (task.part == 0 && sink != -std::numeric_limits<Real>::infinity()) {
        worker.maximum[static_cast<std::size_t>(r)] = sink;
        worker.sum[static_cast<std::size_t>(r * kernels_.lanes)] = 1;
      }
      const support::RowKeys seen = options_.visibility().row(task.b, at.i);
      worker.places.push_back(at);
      worker.seen.push_back(seen);
      if (masks_in_kernel_) worker.mask_rows.push_back(mask_row(task.b, at));
      if (r % block_ == 0) worker.blocks.push_back({{}, seen.band, true});
      BlockKeys& block = worker.blocks.back();
      block.some.widen(seen.prefix);
      block.some.widen(seen.band);
      block.all = block.all.within(seen.band.first, seen.band.last);
      block.intervals = block.intervals && seen.prefix.empty();
    }
    // Rows that fill up a tile read the first one's.
    if (masks_in_kernel_) worker.mask_rows.resize(static_cast<std::size_t>(padded), worker.mask_rows.front());
  }

  const void* mask_row(std::int64_t b, const TaskRow& at) const {
    const ConstTensor& mask = *inputs_.mask();
    return static_cast<const char*>(mask.data) +
           mask.offset(b, at.h, at.i, 0) * static_cast<std::int64_t>(size_of(mask.dtype));
  }

  void load_query(std::int64_t b, const TaskRow& at, Real scale, Real* to) const {
    if (!inputs_.has(TensorId::q_scales)) return widen_row(kernels_, inputs_.q(), b, at.h, at.i, to, scale);
    const std::int64_t dim = call_.key_dim;
    widen_row(kernels_, inputs_.q(), b, at.h, at.i, to);
    support::PreparedRows<Real>::dequantise(inputs_.at(TensorId::q_scales), *call_.q_scale, {b, at.h, at.i}, dim, to);
    for (std::int64_t d = 0; d < dim; ++d) to[d] *= scale;
  }

  /// False when the call's blocks hide every pair of the tile.
  bool any_block(const Task& task, std::int64_t row, support::KeyRange keys) const {
    if (!inputs_.blocks()) return true;
    const std::int64_t end = std::min(row + block_, task.rows);
    while (row < end) {  // the rows of one head at a time
      const TaskRow at = row_of(call_, task, row);
      const std::int64_t rows = std::min(end - row, call_.stored_queries(task.b) - at.i);
      if (options_.visibility().any_block(task.b, at.h, at.i, rows, keys)) return true;
      row += rows;
    }
    return false;
  }

  Tile<Real> tile_of(const Task& task, std::int64_t row, std::int64_t keys, Worker& worker) const {
    Tile<Real> tile;
    tile.rows = padded_rows(task, std::min(block_, task.rows - row));
    tile.keys = keys;
    tile.key_dim = call_.key_dim;
    tile.value_dim = call_.value_dim;
    tile.queries = worker.queries.data() + row * call_.key_dim;
    tile.weights = worker.weights.data();
    tile.out_stride = worker.packed.columns();
    tile.out = worker.out.data() + row * tile.out_stride;
    tile.from_memory = from_memory_;
    tile.maximum = worker.maximum.data() + row;
    tile.sum = worker.sum.data() + row * kernels_.lanes;
    return tile;
  }

  void scores(const Task& task, const Tile<Real>& tile, const Worker& worker) const {
    (is_few(task) ? kernels_.scores_of_few : kernels_.scores)(tile);
    if (is_few(task)) worker.packed.scale_scores(tile);
  }

  /// Rows of the block that begins at `row` against keys [key, key + keys) of the chunk.
  void attend_tile(const Task& task, std::int64_t row, const KeyChunk& chunk, std::int64_t key, std::int64_t keys,
                   Worker& worker) const {
    const BlockKeys& seen = worker.blocks[static_cast<std::size_t>(row / block_)];
    Tile<Real> tile = tile_of(task, row, keys, worker);
    aim(task, row, key, tile, worker);
    const std::int64_t first = chunk.first + key, rows = std::min(block_, task.rows - row);
    const bool plain = (options_.none() || masks_in_kernel_) && seen.intervals;
    const bool whole = seen.all.first <= first && seen.all.last >= first + keys && keys % kernels_.lanes == 0;
    if (plain && !whole) set_intervals(row, rows, first, tile, worker);
    scores(task, tile, worker);
    if (!plain) {
      change_scores(task, row, first, tile, worker);
    } else {
      if (masks_in_kernel_) mask_scores(row, first, tile, worker);
      if (!whole) kernels_.hide(tile);
    }
    kernels_.softmax(tile);
    for (std::int64_t r = 0; options_.drops() && r < rows; ++r)
      options_.drop(score_row(task, row + r, first, keys, worker), tile.weights + r * kTileKeys);
    if (is_few(task)) {
      worker.packed.scale_weights(tile);
      accumulate_few(chunk, tile, worker);
    } else {
      kernels_.accumulate(tile);
    }
    for (std::int64_t suspect : suspects(task, worker)) {
      if (suspect >= key && suspect < key + keys) add_suspect(task, row, rows, chunk, suspect, key, worker);
    }
  }

  /// Values were not looked at: a sum that is not finite tells that some may not be, and is taken back.
  void accumulate_few(const KeyChunk& chunk, const Tile<Real>& tile, Worker& worker) const {
    const std::int64_t numbers = tile.rows * tile.out_stride;
    std::copy_n(tile.out, numbers, worker.before.begin());
    kernels_.accumulate_few(tile);
    if (!support::has_non_finite<Real>({tile.out, numbers}, 1, numbers)) return;
    std::copy_n(worker.before.begin(), numbers, tile.out);
    worker.packed.find_suspects(chunk);
    kernels_.accumulate_few(tile);
  }

  /// Each row sees one interval.
  void set_intervals(std::int64_t row, std::int64_t rows, std::int64_t first, Tile<Real>& tile, Worker& worker) const {
    for (std::int64_t r = 0; r < tile.rows; ++r) {
      support::KeyRange band;
      if (r < rows) band = worker.seen[static_cast<std::size_t>(row + r)].band.within(first, first + tile.keys);
      if (band.empty()) band = {first, first};
      worker.first[static_cast<std::size_t>(r)] = band.first - first;
      worker.last[static_cast<std::size_t>(r)] = band.last - first;
    }
    tile.first = worker.first.data();
    tile.last = worker.last.data();
  }

  void mask_scores(std::int64_t row, std::int64_t first, Tile<Real>& tile, const Worker& worker) const {
    tile.mask_rows = worker.mask_rows.data() + row;
    tile.mask_key = first;
    tile.mask_type = inputs_.mask()->dtype;
    kernels_.mask(tile);
  }

  /// Masks, biases and caps.
  void change_scores(const Task& task, std::int64_t row, std::int64_t first, const Tile<Real>& tile,
                     const Worker& worker) const {
    const std::int64_t rows = std::min(block_, task.rows - row);
    for (std::int64_t r = 0; r < tile.rows; ++r) {
      Real* scores = tile.weights + r * kTileKeys;
      if (r < rows) {
        const support::ScoreRow at = score_row(task, row + r, first, tile.keys, worker);
        options_.cap(at, scores, kernels_.tanh_row);
        options_.bias(at, worker.seen[static_cast<std::size_t>(row + r)], scores);
      }
      std::fill(scores + tile.keys, scores + PackedKeys<Real>::padded(tile.keys, kernels_.lanes),
                -std::numeric_limits<Real>::infinity());
    }
  }

  static support::ScoreRow score_row(const Task& task, std::int64_t r, std::int64_t first, std::int64_t keys,
                                     const Worker& worker) {
    const TaskRow& at = worker.places[static_cast<std::size_t>(r)];
    return {task.b, at.h, at.i, first, keys};
  }

  /// A key whose values are not finite, to the rows that see it.
  void add_suspect(const Task& task, std::int64_t row, std::int64_t rows, const KeyChunk& chunk, std::int64_t suspect,
                   std::int64_t tile_key, Worker& worker) const {
    const std::int64_t key = chunk.first + suspect;
    const support::KeyPlace place = support::find_key(inputs_, task.b, key);
    support::read_row(support::tensor_of(inputs_, place, Cache::values), place.batch, task.group, place.row,
                      worker.value.data());
    worker.packed.scales().apply(inputs_, task.b, task.group, key, place, Cache::values, worker.value.data());
    for (std::int64_t r = 0; r < rows; ++r) {
      const TaskRow at = row_of(call_, task, row + r);
      if (!options_.visibility().sees(task.b, at.h, at.i, worker.seen[static_cast<std::size_t>(row + r)], key))
        continue;
      const Real weight = worker.weights[static_cast<std::size_t>(r * kTileKeys + suspect - tile_key)];
      Real* out = worker.out.data() + (row + r) * worker.packed.columns();
      for (std::int64_t c = 0; c < call_.value_dim; ++c) out[c] += weight * worker.value[static_cast<std::size_t>(c)];
    }
  }

  Real sum_of(std::int64_t r, const Worker& worker) const {
    Real sum = 0;
    for (std::int64_t lane = 0; lane < kernels_.lanes; ++lane)
      sum += worker.sum[static_cast<std::size_t>(r * kernels_.lanes + lane)];
    return sum;
  }

  /// A row that sees nothing gives 0 and -inf.
  void finish(const Task& task, std::int64_t r, const Worker& worker) {
    const TaskRow& at = worker.places[static_cast<std::size_t>(r)];
    const std::size_t row = results_.row(task.b, at.h, at.i);
    const Real sum =
        kernels_.finish_row(worker.out.data() + r * worker.packed.columns(), worker.sum.data() + r * kernels_.lanes,
                            call_.value_dim, results_.out_row(row));
    set_logsumexp(row, worker.maximum[static_cast<std::size_t>(r)], sum);
  }

  void set_logsumexp(std::size_t row, Real maximum, Real sum) {
    if (!keeps_lse_) return;
    results_.lse[row] = sum == 0 ? -std::numeric_limits<Real>::infinity() : maximum + std::log(sum);
  }

  void keep_partial(const Task& task, Worker& worker) {
    for (std::int64_t r = 0; r < task.rows; ++r) {
      Real* out = worker.out.data() + r * worker.packed.columns();
      partials_->keep(task, r, {out, worker.maximum[static_cast<std::size_t>(r)], sum_of(r, worker)});
    }
  }

  void put_together(const Task& task) {
    for (std::int64_t r = 0; r < task.rows; ++r) {
      const auto whole = partials_->put_together(task, r);
      const TaskRow at = row_of(call_, task, r);
      const std::size_t row = results_.row(task.b, at.h, at.i);
      const Real factor = whole.sum == 0 ? Real{0} : Real{1} / whole.sum;
      Real* to = results_.out_row(row);
      for (std::int64_t c = 0; c < call_.value_dim; ++c) to[c] = whole.sum == 0 ? Real{0} : whole.out[c] * factor;
      set_logsumexp(row, whole.maximum, whole.sum);
    }
  }

  /// Stages of the scores that were asked for, from a second product with every key.
  void write_stages(const Task& task, Worker& worker) {
    KeyChunk chunk{task.b, task.group, 0, 0, call_.key_length};
    const std::int64_t step = is_few(task) ? kTileKeys : chunk_;
    for (; chunk.first < call_.key_length; chunk.first += step) {
      chunk.count = std::min(step, call_.key_length - chunk.first);
      load(task, chunk, worker);
      for (std::int64_t row = 0; row < task.rows; row += block_) {
        for (std::int64_t key = 0; key < chunk.count; key += kTileKeys) {
          Tile<Real> tile = tile_of(task, row, std::min(kTileKeys, chunk.count - key), worker);
          aim(task, row, key, tile, worker);
          scores(task, tile, worker);
          for (std::int64_t r = 0; r < std::min(block_, task.rows - row); ++r) {
            const support::ScoreRow at = score_row(task, row + r, chunk.first + key, tile.keys, worker);
            support::each_stage(at, worker.seen[static_cast<std::size_t>(row + r)], options_, kernels_.tanh_row,
                                tile.weights + r * kTileKeys, [&](Output stage, const Real* scores) {
                                  support::keep_stage(stage, at, scores, results_);
                                });
          }
        }
      }
    }
    for (std::int64_t r = 0; r < task.rows; ++r) {
      const TaskRow at = row_of(call_, task, r);
      support::finish_weights(task.b, at.h, at.i, options_, results_);
    }
  }

  const Call call_;
  const Kernels<Real>& kernels_;
  const bool pairs_;  ///< operands are pairs of bf16
  const bool keeps_lse_ = call_.wants(Output::lse) || call_.wants_gradients();
  std::int64_t block_, chunk_ = 0;
  const bool from_memory_ = bytes_of_keys(call_) >= kMemoryBytes;
  Inputs inputs_{}, uploaded_{};
  bool masks_in_kernel_ = false;  ///< the mask is all that changes scores, and kernels read it as it lies
  support::PreparedRows<Real> prepared_;
  support::HostResults<Real> results_;
  const support::ScoreOptions<Real> options_;
  const std::vector<Task> tasks_;
  const support::HostThreads threads_;
  std::vector<Task> split_;  ///< first parts of tasks that were cut by keys
  std::optional<PartialRows<Real>> partials_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::optional<WholeHeads<Real>> heads_;
  std::optional<NarrowHeads<Real>> narrow_;  ///< where those aren't
  std::optional<support::FusedGradients<Real, SimdGradients<Real>>> gradients_;
};

}  // namespace attest::simd
