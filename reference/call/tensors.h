// The tensors of one call: what it reads and what it writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "reference/base/view.h"

namespace attest {

/// A mask tensor: B, H, Lq, Lk, with stride 0 along each broadcast axis.
/// Boolean masks are bytes, 1 = visible; additive ones have a floating type.
struct MaskTensor {
  bool additive = false;
  const void* data = nullptr;
  DType dtype = DType::f32;  ///< of an additive mask
  Index4 shape{};
  Index4 strides{};

  /// Where element (b, h, i, j) lies, in elements from `data`.
  std::int64_t offset(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
    return b * strides[0] + h * strides[1] + i * strides[2] + j * strides[3];
  }
};

/// Block-sparse visibility: one byte (1 = visible) for each block of queries and keys, B, Hq, rows, columns, dense.
struct BlockMask {
  const std::uint8_t* data = nullptr;
  std::int64_t heads = 0, rows = 0, columns = 0;  ///< extents after the batch
  std::int64_t rows_per_block = 1, keys_per_block = 1;

  bool visible(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
    return data[((b * heads + h) * rows + i / rows_per_block) * columns + j / keys_per_block] != 0;
  }
};

/// A paged cache: key j of batch b is row j % size of page entries[b * stride + j / size]. Entries beyond a
/// sequence's length are -1. The views k and v then have shape pages, Hkv, size, D.
struct PageTable {
  const std::int32_t* entries = nullptr;
  std::int64_t size = 1, stride = 0;
};

/// What an attention call reads. Shapes: q B,Hq,Lq,Dqk; k B,Hkv,Lk,Dqk; v B,Hkv,Lk,Dv. With `past` cached keys,
/// past_k and past_v hold those and k and v the Lk - past new ones. Only what the call asks for is set.
struct Inputs {
  ConstTensor q, k, v;
  std::optional<MaskTensor> mask;
  ConstTensor past_k{}, past_v{};
  std::optional<PageTable> pages{};
  std::optional<BlockMask> blocks{};
  std::span<const double> slopes{};  ///< ALiBi: Hq, or B,Hq where they differ by batch; exact in the accumulator's type
  std::span<const double> sinks{};   ///< logits, likewise
  /// Dropout: B,Hq,Lq,Lk bytes, 1 = kept; nullptr: drawn (reference/softmax/philox.h).
  const std::uint8_t* keep = nullptr;
  // Linear attention (reference/linear/linear_attention.h), in the storage type; broadcast axes have stride 0.
  ConstTensor decay{};  ///< B,Hkv,L,Dk, logarithms of the factors
  ConstTensor beta{};   ///< B,Hkv,L,1
  ConstTensor state{};  ///< B,Hkv,Dk,Dv

  /// The slope of query head h of `heads` in batch b.
  double slope(std::int64_t heads, std::int64_t b, std::int64_t h) const {
    const bool by_batch = slopes.size() > static_cast<std::size_t>(heads);
    return slopes[static_cast<std::size_t>(by_batch ? b * heads + h : h)];
  }
};

/// The same of a mask; a boolean one has a byte for each element.
inline std::size_t span_bytes(const MaskTensor& mask) {
  const std::size_t bytes = span_bytes(ConstTensor{mask.data, mask.dtype, mask.shape, mask.strides});
  return mask.additive ? bytes : bytes / size_of(mask.dtype);
}

/// What it writes, each only when asked for: out B,Hq,Lq,Dv and present_k, present_v B,Hkv,Lk,D in the storage type;
/// lse B,Hq,Lq,1 in the accumulator's; the stages of the scores B,Hq,Lq,Lk in the storage type. raw and capped hold
/// every pair, visible or not; biased is -inf and weights is 0 where a key is hidden. present_state B,Hkv,Dk,Dv is what
/// linear attention leaves behind.
struct Outputs {
  MutableTensor out;
  std::optional<MutableTensor> lse, raw, capped, biased, weights, present_k, present_v, present_state;
};

/// Which of the two a present output repeats.
enum class Cache { keys, values };

}  // namespace attest
