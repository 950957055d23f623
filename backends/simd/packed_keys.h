// A chunk of keys and values of one head as the kernels want them, made from wherever they lie: any storage type and
// stride, the past and the new ones, pages.
#pragma once

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <vector>

#include "backends/simd/aligned.h"
#include "backends/simd/kernels.h"
#include "backends/support/host_results.h"
#include "backends/support/tiles.h"
#include "backends/support/transpose.h"

namespace attest::simd {

/// Keys [first, first + count) of key head `group` in batch b.
struct KeyChunk {
  std::int64_t b = 0, group = 0, first = 0, count = 0;
};

template <class Real>
class PackedKeys {
 public:
  /// At most `capacity` keys, a multiple of kTileKeys.
  PackedKeys(const Kernels<Real>& kernels, std::int64_t capacity, std::int64_t key_dim, std::int64_t value_dim)
      : kernels_(kernels),
        key_dim_(key_dim),
        value_dim_(value_dim),
        columns_(padded(value_dim, kernels.lanes)),
        keys_(static_cast<std::size_t>(capacity * key_dim)),
        values_(static_cast<std::size_t>(capacity * columns_)),
        rows_(static_cast<std::size_t>(capacity * std::max(key_dim, value_dim))),
        zeros_(static_cast<std::size_t>(value_dim)) {
    suspects_.reserve(static_cast<std::size_t>(capacity));
  }

  /// Panels of K^T; missing keys become 0.
  void load_keys(const Inputs& inputs, const KeyChunk& chunk) {
    const support::Rows<Real> rows = rows_at(inputs, chunk, Cache::keys, rows_);
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
      for (std::int64_t d = 0; present < width && d < key_dim_; ++d)
        std::fill(to + d * width + present, to + (d + 1) * width, Real{0});
    }
  }

  /// Panels of V; missing columns become 0. A hidden key has weight 0, and 0 * NaN would leak: values that are not
  /// finite become 0, too, and their keys are suspects, which the plan adds one by one to the rows that see them.
  void load_values(const Inputs& inputs, const KeyChunk& chunk) {
    const support::Rows<Real> rows = rows_at(inputs, chunk, Cache::values, rows_);
    loaded_ = chunk.count;
    suspects_.clear();
    for (std::int64_t j = 0; j < chunk.count; ++j) {
      if (put_value(j, rows.data + j * rows.stride)) continue;
      suspects_.push_back(j);
      put_value(j, zeros_.data());
    }
  }

  /// Keys and values where they lie, or through buffers; of those, only values that are not finite become 0.
  void point_at(const Inputs& inputs, const KeyChunk& chunk) {
    direct_keys_ = rows_at(inputs, chunk, Cache::keys, keys_);
    direct_values_ = rows_at(inputs, chunk, Cache::values, values_);
    suspects_.clear();
    if (!support::has_non_finite(direct_values_, chunk.count, value_dim_)) return;
    for (std::int64_t j = 0; j < chunk.count; ++j) {
      const Real* from = direct_values_.data + j * direct_values_.stride;
      Real* to = rows_.data() + j * value_dim_;
      if (support::has_non_finite<Real>({from, 0}, 1, value_dim_)) {
        suspects_.push_back(j);
        std::fill_n(to, value_dim_, Real{0});
      } else {
        std::copy_n(from, value_dim_, to);
      }
    }
    direct_values_ = {rows_.data(), value_dim_};
  }

  /// Puts the chunk's keys from `key` on into a tile.
  void aim(Tile<Real>& tile, std::int64_t key) const {
    tile.keys_packed = keys_.data() + key * key_dim_;
    tile.values = values_.data();
    tile.values_loaded = loaded_;
    tile.value_key = key;
    tile.key_rows = direct_keys_.data + key * direct_keys_.stride;
    tile.key_stride = direct_keys_.stride;
    tile.value_rows = direct_values_.data + key * direct_values_.stride;
    tile.value_stride = direct_values_.stride;
  }

  /// Of the chunk, counted from its first key.
  const std::vector<std::int64_t>& suspects() const { return suspects_; }
  std::int64_t columns() const { return columns_; }
  std::size_t bytes() const { return (keys_.size() + values_.size() + rows_.size()) * sizeof(Real); }

  static std::int64_t padded(std::int64_t n, std::int64_t unit) { return (n + unit - 1) / unit * unit; }

 private:
  /// The chunk's rows as Real: where they lie when that needs no change, else in the buffer.
  support::Rows<Real> rows_at(const Inputs& inputs, const KeyChunk& chunk, Cache which, Aligned<Real>& buffer) {
    const bool values = which == Cache::values;
    const ConstTensor& fresh = values ? inputs.v : inputs.k;
    const ConstTensor& past = values ? inputs.past_v : inputs.past_k;
    const std::int64_t columns = values ? value_dim_ : key_dim_;
    constexpr DType kSame = sizeof(Real) == 8 ? DType::f64 : DType::f32;
    const KeyPlace first = place_of_key(inputs, chunk.b, chunk.first);
    const KeyPlace last = place_of_key(inputs, chunk.b, chunk.first + chunk.count - 1);
    const ConstTensor& from = first.past ? past : fresh;
    const bool together =
        first.past == last.past && first.batch == last.batch && last.row - first.row == chunk.count - 1;
    if (together && from.dtype == kSame && (columns == 1 || from.strides[3] == 1)) {
      return {static_cast<const Real*>(from.data) + from.offset(first.batch, chunk.group, first.row, 0),
              from.strides[2]};
    }
    for (std::int64_t j = 0; j < chunk.count; ++j) {
      const KeyPlace at = place_of_key(inputs, chunk.b, chunk.first + j);
      support::read_row(at.past ? past : fresh, at.batch, chunk.group, at.row, buffer.data() + j * columns);
    }
    return {buffer.data(), columns};
  }

  /// False when a number is NaN or infinite: its exponent's bits are all ones, which vectorises better.
  bool put_value(std::int64_t key, const Real* from) {
    using Bits = std::conditional_t<sizeof(Real) == 4, std::uint32_t, std::uint64_t>;
    constexpr Bits kExponent = sizeof(Real) == 4 ? Bits{0x7f800000u} : static_cast<Bits>(0x7ff0000000000000u);
    Bits largest = 0;
    for (std::int64_t column = 0; column < columns_; column += kernels_.width) {
      const std::int64_t width = std::min(kernels_.width, columns_ - column),
                         present = std::min(width, value_dim_ - column);
      Real* to = values_.data() + column * loaded_ + key * width;
      for (std::int64_t c = 0; c < present; ++c) {
        Bits bits = 0;
        std::memcpy(&bits, from + column + c, sizeof bits);
        std::memcpy(to + c, &bits, sizeof bits);
        largest = std::max(largest, static_cast<Bits>(bits & kExponent));
      }
      std::fill(to + present, to + width, Real{0});
    }
    return largest != kExponent;
  }

  const Kernels<Real>& kernels_;
  std::int64_t key_dim_, value_dim_, columns_, loaded_ = 0;
  Aligned<Real> keys_, values_, rows_, zeros_;
  support::Rows<Real> direct_keys_, direct_values_;
  std::vector<std::int64_t> suspects_;
};

}  // namespace attest::simd
