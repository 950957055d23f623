// Strided views: how every tensor crosses an interface of attest.
//
// A view owns nothing. `data` points at the element with index (0, 0, 0, 0); strides count elements,
// may be 0 on inputs (a broadcast axis) and never reach outside the buffer the view was made from.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "reference/half.h"
#include "reference/types.h"

namespace attest {

/// Element index of (b, h, l, d). With `starts` the rows of sequence b begin at row starts[b]: packed storage without
/// padding, where the first stride is not used.
constexpr std::int64_t element_at(const Index4& strides, const std::int64_t* starts, std::int64_t b, std::int64_t h,
                                  std::int64_t l, std::int64_t d) {
  const std::int64_t first = starts ? starts[b] * strides[2] : b * strides[0];
  return first + h * strides[1] + l * strides[2] + d * strides[3];
}

template <class T>
struct View {
  T* data = nullptr;
  Index4 shape{};
  Index4 strides{};
  const std::int64_t* starts = nullptr;  ///< packed sequences only (layout thd): B + 1 row numbers

  T& operator()(std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) const {
    return data[element_at(strides, starts, b, h, l, d)];
  }
  std::int64_t size() const { return shape[0] * shape[1] * shape[2] * shape[3]; }
};

/// A view whose element type is known at run time only.
template <class Void>
struct AnyView {
  Void* data = nullptr;
  DType dtype = DType::f32;
  Index4 shape{};
  Index4 strides{};
  const std::int64_t* starts = nullptr;

  std::int64_t at(std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) const {
    return element_at(strides, starts, b, h, l, d);
  }
  /// The typed view. The caller has made sure that T is what `dtype` says.
  template <class T>
  View<T> as() const {
    return {static_cast<T*>(data), shape, strides, starts};
  }
};

using ConstTensor = AnyView<const void>;
using MutableTensor = AnyView<void>;

/// A mask tensor: B, H, Lq, Lk, with stride 0 along each broadcast axis.
/// Boolean masks are bytes, 1 = visible; additive ones have a floating type.
struct MaskTensor {
  bool additive = false;
  const void* data = nullptr;
  DType dtype = DType::f32;  ///< of an additive mask
  Index4 shape{};
  Index4 strides{};

  std::int64_t at(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
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
/// past_k and past_v hold those and k and v the Lk - past new ones. Only what the problem asks for is set.
struct Inputs {
  ConstTensor q, k, v;
  std::optional<MaskTensor> mask;
  ConstTensor past_k{}, past_v{};
  std::optional<PageTable> pages{};
  std::optional<BlockMask> blocks{};
  std::span<const double> slopes{};    ///< ALiBi, one for each query head; exact in the accumulator's type
  std::span<const double> sinks{};     ///< logits, likewise
  const std::uint8_t* keep = nullptr;  ///< dropout: B,Hq,Lq,Lk bytes, 1 = kept; nullptr: drawn (philox.h)
  // Linear attention (linear_attention.h), in the storage type; broadcast axes have stride 0.
  ConstTensor decay{};  ///< B,Hkv,L,Dk, logarithms of the factors
  ConstTensor beta{};   ///< B,Hkv,L,1
  ConstTensor state{};  ///< B,Hkv,Dk,Dv
};

/// Bytes from element (0, 0, 0, 0) to the last one of a view, both included.
template <class Void>
std::size_t span_bytes(const AnyView<Void>& view) {
  for (std::int64_t extent : view.shape) {
    if (extent == 0) return 0;
  }
  std::int64_t last = 0;
  for (int axis = view.starts ? 1 : 0; axis < 4; ++axis) {
    const std::int64_t rows = view.starts && axis == 2 ? view.starts[view.shape[0]] : view.shape[axis];
    if (rows == 0) return 0;
    last += (rows - 1) * view.strides[axis];
  }
  return static_cast<std::size_t>(last + 1) * size_of(view.dtype);
}

/// The same of a mask; a boolean one has a byte for each element.
inline std::size_t span_bytes(const MaskTensor& mask) {
  const std::size_t bytes = span_bytes(ConstTensor{mask.data, mask.dtype, mask.shape, mask.strides});
  return mask.additive ? bytes : bytes / size_of(mask.dtype);
}

/// Where key j of batch b is stored: row `row` of entry `batch` of k and v, or of past_k and past_v.
struct KeyPlace {
  bool past = false;
  std::int64_t batch = 0, row = 0;
};

inline KeyPlace place_of_key(const Inputs& inputs, std::int64_t b, std::int64_t j) {
  if (inputs.pages)
    return {false, inputs.pages->entries[b * inputs.pages->stride + j / inputs.pages->size], j % inputs.pages->size};
  const std::int64_t past = inputs.past_k.data ? inputs.past_k.shape[2] : 0;
  return j < past ? KeyPlace{true, b, j} : KeyPlace{false, b, j - past};
}

/// What it writes, each only when asked for: out B,Hq,Lq,Dv and present_k, present_v B,Hkv,Lk,D in the storage type;
/// lse B,Hq,Lq,1 in the accumulator's; the stages of the scores B,Hq,Lq,Lk in the storage type. raw and capped hold
/// every pair, visible or not; biased is -inf and weights is 0 where a key is hidden. present_state B,Hkv,Dk,Dv is what
/// linear attention leaves behind.
struct Outputs {
  MutableTensor out;
  std::optional<MutableTensor> lse, raw, capped, biased, weights, present_k, present_v, present_state;
};

/// Reads one element as a double, exactly.
inline double load(const void* data, DType type, std::int64_t at) {
  switch (type) {
    case DType::f64: return static_cast<const double*>(data)[at];
    case DType::f32: return static_cast<double>(static_cast<const float*>(data)[at]);
    case DType::f16: return static_cast<double>(f16_to_float(static_cast<const std::uint16_t*>(data)[at]));
    case DType::bf16: return static_cast<double>(bf16_to_float(static_cast<const std::uint16_t*>(data)[at]));
  }
  return 0;
}

/// Which of the two a present output repeats.
enum class Cache { keys, values };

/// Feature d of key (or value) j of key head h, wherever it lies: in the past, in a page or among the new ones.
inline double load_cached(const Inputs& inputs, Cache cache, std::int64_t b, std::int64_t h, std::int64_t j,
                          std::int64_t d) {
  const KeyPlace place = place_of_key(inputs, b, j);
  const bool keys = cache == Cache::keys;
  const ConstTensor& from = place.past ? (keys ? inputs.past_k : inputs.past_v) : (keys ? inputs.k : inputs.v);
  return load(from.data, from.dtype, from.at(place.batch, h, place.row, d));
}

/// Writes one element, rounded to nearest.
inline void store(void* data, DType type, std::int64_t at, double value) {
  switch (type) {
    case DType::f64: static_cast<double*>(data)[at] = value; break;
    case DType::f32: static_cast<float*>(data)[at] = static_cast<float>(value); break;
    case DType::f16: static_cast<std::uint16_t*>(data)[at] = to_f16(value); break;
    case DType::bf16: static_cast<std::uint16_t*>(data)[at] = to_bf16(value); break;
  }
}

}  // namespace attest
