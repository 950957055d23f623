// A chunk of keys and values of one head in bf16, as kernels that add products two at a time want them: pairs of
// features, and of values. As packed_keys.h, which is for all other types.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "backends/simd/kernels.h"
#include "backends/simd/packed_keys.h"
#include "backends/support/aligned.h"
#include "backends/support/key_rows.h"
#include "backends/support/transpose.h"

namespace attest::simd {

/// Whether queries, keys and values of a call are bf16, and its result comes without gradients.
inline bool is_of_pairs(const Call& call) {
  if (!call.has_scores() || call.wants_gradients()) return false;
  for (const TensorId id : {TensorId::q, TensorId::k, TensorId::v}) {
    if (type_of(call, id) != DType::bf16) return false;
  }
  for (const TensorId id : {TensorId::past_k, TensorId::past_v}) {
    if (call.past && type_of(call, id) != DType::bf16) return false;
  }
  return true;
}

/// A row of bf16, its features side by side; an odd one gets a 0 behind it.
inline void copy_row(const ConstTensor& t, std::int64_t b, std::int64_t h, std::int64_t l, Pair* to) {
  const auto* from = static_cast<const std::uint16_t*>(t.data) + t.offset(b, h, l, 0);
  const std::int64_t dim = t.shape[3];
  const auto at = [&](std::int64_t d) { return d < dim ? from[d * t.strides[3]] : std::uint16_t{0}; };
  if (t.strides[3] == 1 && dim % 2 == 0) {
    std::memcpy(to, from, static_cast<std::size_t>(dim) * sizeof *from);
  } else {
    for (std::int64_t d = 0; d < dim; d += 2) to[d / 2] = static_cast<Pair>(at(d) | at(d + 1) << 16);
  }
}

class PackedPairs {
 public:
  /// At most `capacity` keys, a multiple of kTileKeys.
  PackedPairs(const Kernels<float>& kernels, std::int64_t capacity, std::int64_t key_dim, std::int64_t value_dim)
      : kernels_(kernels),
        key_dim_(key_dim),
        value_dim_(value_dim),
        columns_(PackedKeys<float>::padded(value_dim, kernels.lanes)),
        keys_(static_cast<std::size_t>(capacity * pairs_of(key_dim))),
        values_(static_cast<std::size_t>(capacity / 2 * columns_)),
        rows_(static_cast<std::size_t>(capacity * std::max(pairs_of(key_dim), pairs_of(value_dim)))) {
    suspects_.reserve(static_cast<std::size_t>(capacity));
  }

  void load_keys(const Inputs& inputs, const KeyChunk& chunk) {
    const std::int64_t width = kernels_.width, depth = pairs_of(key_dim_);
    const support::Rows<Pair> rows = key_rows(inputs, chunk);
    constexpr std::int64_t kRows = support::kSquare<Pair>, kLine = 64 / static_cast<std::int64_t>(sizeof(Pair));
    Pair* to = keys_.data();
    for (std::int64_t first = 0; first < chunk.count; first += width, to += width * depth) {
      const std::int64_t present = std::min(width, chunk.count - first);
      for (std::int64_t j = 0; j < present; j += kRows) {
        for (std::int64_t n = 2 * kRows; n < 3 * kRows; ++n) {
          for (std::int64_t d = 0; d < depth; d += kLine)
            __builtin_prefetch(rows.data + (first + j + n) * rows.stride + d);
        }
        support::transpose(rows.data + (first + j) * rows.stride, rows.stride, std::min(kRows, present - j), depth,
                           Pair{1}, to + j, width);
      }
      for (std::int64_t d = 0; present < width && d < depth; ++d)
        std::fill(to + d * width + present, to + (d + 1) * width, Pair{0});
    }
  }

  /// As PackedKeys::load_values.
  void load_values(const Inputs& inputs, const KeyChunk& chunk) {
    constexpr std::uint16_t kExponent = 0x7f80;
    support::Rows<std::uint16_t> rows;
    if (const auto lying = rows_in_place(inputs, chunk, Cache::values)) {
      rows = *lying;
    } else {
      rows = {reinterpret_cast<const std::uint16_t*>(gather(inputs, chunk, Cache::values)), 2 * pairs_of(value_dim_)};
    }
    suspects_.clear();
    loaded_ = chunk.count;
    if (kernels_.pack_value_pairs(rows.data, rows.stride, loaded_, value_dim_, values_.data())) return;
    for (std::int64_t j = 0; j < loaded_; ++j) {
      const std::uint16_t* row = rows.data + j * rows.stride;
      if (std::none_of(row, row + value_dim_, [](std::uint16_t bits) { return (bits & kExponent) == kExponent; }))
        continue;
      suspects_.push_back(j);
      const Pair kept = j % 2 == 0 ? 0xffff0000u : 0x0000ffffu;
      for (std::int64_t column = 0; column < columns_; column += kernels_.width) {
        const std::int64_t width = std::min(kernels_.width, columns_ - column);
        Pair* pairs = values_.data() + column * pairs_of(loaded_) + j / 2 * width;
        for (std::int64_t c = 0; c < width; ++c) pairs[c] &= kept;
      }
    }
  }

  /// Puts the chunk's keys from `key` on into a tile, of which `pairs` holds the rest.
  void aim(Tile<float>& tile, PairTile& pairs, std::int64_t key) const {
    pairs.keys = keys_.data() + key * pairs_of(key_dim_);
    pairs.values = values_.data();
    tile.values_loaded = loaded_;
    tile.value_key = key;
    tile.pairs = &pairs;
  }

  /// Of the chunk, counted from its first key.
  const std::vector<std::int64_t>& suspects() const { return suspects_; }
  std::size_t bytes() const { return (keys_.size() + values_.size() + rows_.size()) * sizeof(Pair); }

 private:
  static std::optional<support::Rows<std::uint16_t>> rows_in_place(const Inputs& inputs, const KeyChunk& chunk,
                                                                   Cache which) {
    const auto place = support::place_of_keys(inputs, chunk.b, chunk.first, chunk.count);
    if (!place) return std::nullopt;
    const ConstTensor& t = support::tensor_of(inputs, *place, which);
    if (t.shape[3] != 1 && t.strides[3] != 1) return std::nullopt;
    const auto* data = static_cast<const std::uint16_t*>(t.data);
    return support::Rows<std::uint16_t>{data + t.offset(place->batch, chunk.group, place->row, 0), t.strides[2]};
  }

  /// Where rows hold whole pairs they may stay where they lie.
  support::Rows<Pair> key_rows(const Inputs& inputs, const KeyChunk& chunk) {
    const auto rows = rows_in_place(inputs, chunk, Cache::keys);
    if (rows && key_dim_ % 2 == 0 && rows->stride % 2 == 0 &&
        reinterpret_cast<std::uintptr_t>(rows->data) % sizeof(Pair) == 0)
      return {reinterpret_cast<const Pair*>(rows->data), rows->stride / 2};
    return {gather(inputs, chunk, Cache::keys), pairs_of(key_dim_)};
  }

  /// Into rows of whole pairs, side by side.
  const Pair* gather(const Inputs& inputs, const KeyChunk& chunk, Cache which) {
    const std::int64_t depth = pairs_of(which == Cache::values ? value_dim_ : key_dim_);
    Pair* to = rows_.data();
    for (std::int64_t j = 0; j < chunk.count; ++j, to += depth) {
      const support::KeyPlace at = support::find_key(inputs, chunk.b, chunk.first + j);
      copy_row(support::tensor_of(inputs, at, which), at.batch, chunk.group, at.row, to);
    }
    return rows_.data();
  }

  const Kernels<float>& kernels_;
  std::int64_t key_dim_, value_dim_, columns_, loaded_ = 0;
  support::Aligned<Pair> keys_, values_, rows_;
  std::vector<std::int64_t> suspects_;
};

}  // namespace attest::simd
