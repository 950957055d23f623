// A chunk of keys and values of one head as the kernels want them, made from wherever they lie: any storage type and
// stride, the past and the new ones, pages.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "backends/simd/code_scales.h"
#include "backends/simd/kernels.h"
#include "backends/support/aligned.h"
#include "backends/support/host_results.h"
#include "backends/support/key_rows.h"
#include "backends/support/tiles.h"
#include "backends/support/transpose.h"

namespace attest::simd {

/// Keys [first, first + count) of key head `group` in batch b; more will follow up to `end`.
struct KeyChunk {
  std::int64_t b = 0, group = 0, first = 0, count = 0, end = 0;
};

/// A row of any storage type and stride, times a factor.
template <class Real>
void widen_row(const Kernels<Real>& kernels, const ConstTensor& t, std::int64_t b, std::int64_t h, std::int64_t l,
               Real* to, Real factor = 1) {
  constexpr DType kSame = sizeof(Real) == 8 ? DType::f64 : DType::f32;
  const bool narrow = t.dtype == DType::f16 || t.dtype == DType::bf16 || t.dtype == DType::i8;
  if ((t.dtype == kSame || narrow) && t.strides[3] == 1) {
    const auto* bytes =
        static_cast<const char*>(t.data) + t.offset(b, h, l, 0) * static_cast<std::int64_t>(size_of(t.dtype));
    kernels.widen(bytes, t.dtype, t.shape[3], factor, to);
  } else {
    support::read_row(t, b, h, l, to);
    for (std::int64_t d = 0; d < t.shape[3]; ++d) to[d] *= factor;
  }
}

template <class Real>
class PackedKeys {
 public:
  /// At most `capacity` keys, a multiple of kTileKeys.
  PackedKeys(const Kernels<Real>& kernels, std::int64_t capacity, const Call& call)
      : kernels_(kernels),
        capacity_(capacity),
        key_dim_(call.key_dim),
        value_dim_(call.value_dim),
        columns_(padded(call.value_dim, kernels.lanes)),
        scales_(call),
        keys_(static_cast<std::size_t>(capacity * key_dim_)),
        values_(static_cast<std::size_t>(capacity * columns_)),
        rows_(static_cast<std::size_t>(capacity * std::max(key_dim_, value_dim_))),
        zeros_(static_cast<std::size_t>(value_dim_)) {
    suspects_.reserve(static_cast<std::size_t>(capacity));
  }

  /// The chunk's rows as Real: where they lie when that needs no change, else in a buffer.
  support::Rows<Real> rows_at(const Inputs& inputs, const KeyChunk& chunk, Cache which) {
    const std::int64_t columns = which == Cache::values ? value_dim_ : key_dim_;
    if (const auto place = support::place_of_keys(inputs, chunk.b, chunk.first, chunk.count)) {
      const ConstTensor& from = support::tensor_of(inputs, *place, which);
      if (const auto rows = support::rows_in_place<Real>(from, place->batch, chunk.group, place->row)) return *rows;
    }
    for (std::int64_t j = 0; j < chunk.count; ++j) {
      if (const std::int64_t ahead = chunk.first + j + kAhead; ahead < chunk.end) {
        const support::KeyPlace next = support::find_key(inputs, chunk.b, ahead);
        fetch(support::tensor_of(inputs, next, which), next.batch, chunk.group, next.row);
      }
      const support::KeyPlace at = support::find_key(inputs, chunk.b, chunk.first + j);
      widen_row(kernels_, support::tensor_of(inputs, at, which), at.batch, chunk.group, at.row,
                rows_.data() + j * columns);
      scales_.apply(inputs, chunk.b, chunk.group, chunk.first + j, at, which, rows_.data() + j * columns);
    }
    return {rows_.data(), columns};
  }

  std::int64_t capacity() const { return capacity_; }

  /// Keys and values of the chunk as rows, where they lie or in buffers.
  std::pair<support::Rows<Real>, support::Rows<Real>> rows_of_both(const Inputs& inputs, const KeyChunk& chunk) {
    support::Rows<Real> keys = rows_at(inputs, chunk, Cache::keys);
    if (keys.data == rows_.data()) {
      std::copy_n(rows_.begin(), chunk.count * key_dim_, keys_.begin());
      keys = {keys_.data(), key_dim_};
    }
    return {keys, rows_at(inputs, chunk, Cache::values)};
  }

  /// Panels of K^T; missing keys of a vector become 0.
  void load_keys(const Inputs& inputs, const KeyChunk& chunk) {
    const support::Rows<Real> rows = rows_at(inputs, chunk, Cache::keys);
    const std::int64_t width = kernels_.width;
    Real* to = keys_.data();
    for (std::int64_t first = 0; first < chunk.count; first += width, to += width * key_dim_) {
      const std::int64_t present = std::min(width, chunk.count - first);
      // A few whole rows at a time, as they lie in memory; those to come are on their way.
      for (std::int64_t j = 0; j < present; j += support::kSquare<Real>) {
        for (std::int64_t n = 2 * support::kSquare<Real>; n < 3 * support::kSquare<Real>; ++n) {
          for (std::int64_t d = 0; d < key_dim_; d += 64 / static_cast<std::int64_t>(sizeof(Real)))
            __builtin_prefetch(rows.data + (first + j + n) * rows.stride + d);
        }
        support::transpose(rows.data + (first + j) * rows.stride, rows.stride,
                           std::min(support::kSquare<Real>, present - j), key_dim_, Real{1}, to + j, width);
      }
      const std::int64_t read = padded(present, kernels_.lanes);
      for (std::int64_t d = 0; present < read && d < key_dim_; ++d)
        std::fill(to + d * width + present, to + d * width + read, Real{0});
    }
  }

  /// Panels of V; missing columns become 0. A hidden key has weight 0, and 0 * NaN would leak: values that are not
  /// finite become 0, too, and their keys are suspects, which the plan adds one by one to the rows that see them.
  void load_values(const Inputs& inputs, const KeyChunk& chunk) {
    const support::Rows<Real> rows = rows_at(inputs, chunk, Cache::values);
    loaded_ = chunk.count;
    suspects_.clear();
    if (kernels_.pack_values(rows.data, rows.stride, loaded_, value_dim_, values_.data())) return;
    for (std::int64_t j = 0; j < loaded_; ++j) {
      if (is_finite(rows.data + j * rows.stride, kSame)) continue;
      suspects_.push_back(j);
      for (std::int64_t column = 0; column < columns_; column += kernels_.width) {
        const std::int64_t width = std::min(kernels_.width, columns_ - column);
        std::fill_n(values_.data() + column * loaded_ + j * width, width, Real{0});
      }
    }
  }

  /// At most kTileKeys keys and values where they lie, or in buffers when no vector can read them there; and where the
  /// next ones lie. Values are not looked at: see find_suspects().
  void point_at(const Inputs& inputs, const KeyChunk& chunk) {
    suspects_.clear();
    const DType type = inputs.k().dtype;
    bool readable = kernels_.reads(type) && scales_.of_rows();
    for (const ConstTensor* t : {&inputs.k(), &inputs.v(), &inputs.past_k(), &inputs.past_v()})
      readable = readable && (!t->data || (t->dtype == type && has_whole_rows(*t)));
    stored_ = readable ? type : kSame;
    const std::int64_t there = readable ? std::min(2 * kTileKeys, chunk.end - chunk.first) : chunk.count;
    const auto place = support::place_of_keys(inputs, chunk.b, chunk.first, there);
    if (readable && place) {
      point_at_rows(support::tensor_of(inputs, *place, Cache::keys), *place, chunk.group, there, key_rows_);
      point_at_rows(support::tensor_of(inputs, *place, Cache::values), *place, chunk.group, there, value_rows_);
    } else {
      for (std::int64_t j = 0; j < there; ++j) point_at_key(inputs, chunk, j, readable);
    }
    scaled_ = readable && scales_.any();
    if (scaled_) {
      scales_.read(inputs, chunk.b, chunk.group, chunk.first, chunk.count, Cache::keys, key_scales_.data());
      scales_.read(inputs, chunk.b, chunk.group, chunk.first, chunk.count, Cache::values, value_scales_.data());
      for (std::int64_t j = 0; j < chunk.count; ++j) {
        const auto at = static_cast<std::size_t>(j);
        if (std::isfinite(value_scales_[at])) continue;
        suspects_.push_back(j);
        value_rows_[at] = zeros_.data();
        value_scales_[at] = 1;
      }
    }
    std::fill(key_rows_.begin() + there, key_rows_.end(), key_rows_[0]);
    std::fill(value_rows_.begin() + there, value_rows_.end(), value_rows_[0]);
  }

  /// What codes that were left where they lie are multiplied by: scores by those of keys, weights by those of values.
  void scale_scores(const Tile<Real>& tile) const { scale(tile, key_scales_); }
  void scale_weights(const Tile<Real>& tile) const { scale(tile, value_scales_); }

  /// Puts zeros in the place of values that are not finite. To be asked when a product with them was not.
  void find_suspects(const KeyChunk& chunk) {
    for (std::int64_t j = 0; j < chunk.count; ++j) {
      const void*& row = value_rows_[static_cast<std::size_t>(j)];
      if (is_finite(row, stored_)) continue;
      suspects_.push_back(j);
      row = zeros_.data();
    }
  }

  /// Puts the chunk's keys from `key` on into a tile.
  void aim(Tile<Real>& tile, std::int64_t key) const {
    tile.keys_packed = keys_.data() + key * key_dim_;
    tile.values = values_.data();
    tile.values_loaded = loaded_;
    tile.value_key = key;
    tile.key_rows = key_rows_.data();
    tile.value_rows = value_rows_.data();
    tile.stored = stored_;
  }

  /// Of the chunk, counted from its first key.
  const std::vector<std::int64_t>& suspects() const { return suspects_; }
  std::int64_t columns() const { return columns_; }
  const CodeScales<Real>& scales() const { return scales_; }
  std::size_t bytes() const { return (keys_.size() + values_.size() + rows_.size()) * sizeof(Real); }

  static std::int64_t padded(std::int64_t n, std::int64_t unit) { return (n + unit - 1) / unit * unit; }

 private:
  static constexpr DType kSame = sizeof(Real) == 8 ? DType::f64 : DType::f32;
  static constexpr std::int64_t kAhead = 32;  ///< rows that are on their way from memory

  /// Whether features lie side by side.
  static bool has_whole_rows(const ConstTensor& t) { return t.shape[3] == 1 || t.strides[3] == 1; }

  static const char* row_at(const ConstTensor& t, std::int64_t b, std::int64_t h, std::int64_t l) {
    return static_cast<const char*>(t.data) + t.offset(b, h, l, 0) * static_cast<std::int64_t>(size_of(t.dtype));
  }

  static void fetch(const ConstTensor& t, std::int64_t b, std::int64_t h, std::int64_t l) {
    const char* row = row_at(t, b, h, l);
    for (std::size_t at = 0; at < static_cast<std::size_t>(t.shape[3]) * size_of(t.dtype); at += 64)
      __builtin_prefetch(row + at);
  }

  using RowPointers = std::array<const void*, 2 * kTileKeys>;

  static void point_at_rows(const ConstTensor& t, const support::KeyPlace& place, std::int64_t h, std::int64_t count,
                            RowPointers& rows) {
    const char* row = row_at(t, place.batch, h, place.row);
    const std::int64_t step = t.strides[2] * static_cast<std::int64_t>(size_of(t.dtype));
    for (std::int64_t j = 0; j < count; ++j, row += step) rows[static_cast<std::size_t>(j)] = row;
  }

  void point_at_key(const Inputs& inputs, const KeyChunk& chunk, std::int64_t j, bool readable) {
    const auto at = static_cast<std::size_t>(j);
    const support::KeyPlace place = support::find_key(inputs, chunk.b, chunk.first + j);
    const ConstTensor& k = support::tensor_of(inputs, place, Cache::keys);
    const ConstTensor& v = support::tensor_of(inputs, place, Cache::values);
    if (readable) {
      key_rows_[at] = row_at(k, place.batch, chunk.group, place.row);
      value_rows_[at] = row_at(v, place.batch, chunk.group, place.row);
      return;
    }
    Real *key = keys_.data() + j * key_dim_, *value = values_.data() + j * value_dim_;
    support::read_row(k, place.batch, chunk.group, place.row, key);
    support::read_row(v, place.batch, chunk.group, place.row, value);
    scales_.apply(inputs, chunk.b, chunk.group, chunk.first + j, place, Cache::keys, key);
    scales_.apply(inputs, chunk.b, chunk.group, chunk.first + j, place, Cache::values, value);
    key_rows_[at] = key;
    value_rows_[at] = value;
  }

  using RowScales = std::array<Real, kTileKeys>;

  void scale(const Tile<Real>& tile, const RowScales& scales) const {
    if (!scaled_) return;
    for (std::int64_t r = 0; r < tile.rows; ++r) {
      for (std::int64_t j = 0; j < tile.keys; ++j)
        tile.weights[r * kTileKeys + j] *= scales[static_cast<std::size_t>(j)];
    }
  }

  /// Of a row of values.
  bool is_finite(const void* row, DType stored) const {
    const auto largest_exponent = [&]<class Bits>(Bits exponent) {
      Bits largest = 0;
      for (std::int64_t c = 0; c < value_dim_; ++c) {
        Bits bits = 0;
        std::memcpy(&bits, static_cast<const char*>(row) + c * static_cast<std::int64_t>(sizeof bits), sizeof bits);
        largest = std::max(largest, static_cast<Bits>(bits & exponent));
      }
      return largest != exponent;
    };
    switch (stored) {
      case DType::f64: return largest_exponent(std::uint64_t{0x7ff0000000000000u});
      case DType::f32: return largest_exponent(std::uint32_t{0x7f800000u});
      case DType::f16: return largest_exponent(std::uint16_t{0x7c00u});
      case DType::bf16: return largest_exponent(std::uint16_t{0x7f80u});
      default: return true;
    }
  }

  const Kernels<Real>& kernels_;
  const std::int64_t capacity_;
  std::int64_t key_dim_, value_dim_, columns_, loaded_ = 0;
  CodeScales<Real> scales_;
  bool scaled_ = false;  ///< rows are codes that have scales
  support::Aligned<Real> keys_, values_, rows_, zeros_;
  RowPointers key_rows_{}, value_rows_{};
  RowScales key_scales_{}, value_scales_{};
  DType stored_ = kSame;
  std::vector<std::int64_t> suspects_;
};

}  // namespace attest::simd
