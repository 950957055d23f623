// Strided views: how every tensor crosses an interface of attest.
//
// A view owns nothing. `data` points at the element with index (0, 0, 0, 0); strides count elements,
// may be 0 on inputs (a broadcast axis) and never reach outside the buffer the view was made from.
#pragma once

#include <cstdint>
#include <optional>

#include "reference/types.h"

namespace attest {

template <class T>
struct View {
  T* data = nullptr;
  Index4 shape{};
  Index4 strides{};

  T& operator()(std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) const {
    return data[b * strides[0] + h * strides[1] + l * strides[2] + d * strides[3]];
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

  /// The typed view. The caller has made sure that T is what `dtype` says.
  template <class T>
  View<T> as() const {
    return {static_cast<T*>(data), shape, strides};
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

/// What an attention call reads. Shapes: q B,Hq,Lq,Dqk; k B,Hkv,Lk,Dqk; v B,Hkv,Lk,Dv.
struct Inputs {
  ConstTensor q, k, v;
  std::optional<MaskTensor> mask;
};

/// What it writes: out B,Hq,Lq,Dv; lse B,Hq,Lq,1 (in the accumulator's type), only when asked for.
struct Outputs {
  MutableTensor out;
  std::optional<MutableTensor> lse;
};

/// Reads one element as a double, exactly. 16-bit types are not stored by this version.
inline double load(const void* data, DType type, std::int64_t at) {
  return type == DType::f64 ? static_cast<const double*>(data)[at]
                            : static_cast<double>(static_cast<const float*>(data)[at]);
}

}  // namespace attest
