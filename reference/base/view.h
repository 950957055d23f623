// Strided views: how every tensor crosses an interface of attest.
//
// A view owns nothing. `data` points at the element with index (0, 0, 0, 0); strides count elements,
// may be 0 on inputs (a broadcast axis) and never reach outside the buffer the view was made from.
// Elements of 4 bits lie two to a byte, the one with the even number in its lower half: rows are dense, and every row
// begins with a byte.
#pragma once

#include <cstddef>
#include <cstdint>

#include "reference/base/half.h"
#include "reference/base/types.h"

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

  /// Where element (b, h, l, d) lies, in elements from `data`.
  std::int64_t offset(std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) const {
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
  return bytes_of(view.dtype, static_cast<std::size_t>(last + 1));
}

/// Codes of 4 bits by number.
class HalfBytes {
 public:
  explicit HalfBytes(const void* data) : bytes_(static_cast<const std::uint8_t*>(data)) {}
  HalfBytes& operator+=(std::int64_t elements) {
    first_ += elements;
    return *this;
  }
  std::uint8_t operator[](std::int64_t at) const {
    at += first_;
    return static_cast<std::uint8_t>(bytes_[at / 2] >> (at % 2 * 4) & 0xf);
  }
  /// The number of a code of i4.
  static constexpr std::int8_t to_integer(std::uint8_t code) {
    return static_cast<std::int8_t>(code < 8 ? code : code - 16);
  }

 private:
  const std::uint8_t* bytes_;
  std::int64_t first_ = 0;
};

/// Writes one code of 4 bits.
inline void store_half_byte(void* data, std::int64_t at, std::uint8_t code) {
  std::uint8_t& byte = static_cast<std::uint8_t*>(data)[at / 2];
  const auto shift = static_cast<int>(at % 2 * 4);
  byte = static_cast<std::uint8_t>((byte & ~(0xf << shift)) | (code & 0xf) << shift);
}

/// Reads one element as a double, exactly.
inline double load(const void* data, DType type, std::int64_t at) {
  switch (type) {
    case DType::f64: return static_cast<const double*>(data)[at];
    case DType::f32: return static_cast<double>(static_cast<const float*>(data)[at]);
    case DType::f16: return static_cast<double>(f16_to_float(static_cast<const std::uint16_t*>(data)[at]));
    case DType::bf16: return static_cast<double>(bf16_to_float(static_cast<const std::uint16_t*>(data)[at]));
    case DType::i8: return static_cast<double>(static_cast<const std::int8_t*>(data)[at]);
    case DType::i4: return static_cast<double>(HalfBytes::to_integer(HalfBytes(data)[at]));
    case DType::e2m1: return decode(HalfBytes(data)[at], type);
    case DType::boolean: return static_cast<double>(static_cast<const std::uint8_t*>(data)[at]);
    case DType::i32: return static_cast<double>(static_cast<const std::int32_t*>(data)[at]);
    default:
      return decode(
          size_of(type) == 1 ? static_cast<const std::uint8_t*>(data)[at] : static_cast<const std::uint16_t*>(data)[at],
          type);
  }
}

/// use(elements, number): the elements of a tensor of numbers as they are stored, by a pointer or what has its += and
/// [], and a function that gives the number of one exactly, as a float or a double.
template <class Use>
void with_elements(const void* data, DType type, const Use& use) {
  switch (type) {
    case DType::f64: return use(static_cast<const double*>(data), [](double x) { return x; });
    case DType::f32: return use(static_cast<const float*>(data), [](float x) { return x; });
    case DType::f16: return use(static_cast<const std::uint16_t*>(data), f16_to_float);
    case DType::bf16: return use(static_cast<const std::uint16_t*>(data), bf16_to_float);
    case DType::i8:
      return use(static_cast<const std::int8_t*>(data), [](std::int8_t x) { return static_cast<float>(x); });
    case DType::i4:
      return use(HalfBytes(data), [](std::uint8_t x) { return static_cast<float>(HalfBytes::to_integer(x)); });
    case DType::e2m1: return use(HalfBytes(data), [](std::uint8_t x) { return decode(x, DType::e2m1); });
    default: break;
  }
  const auto decoded = [type](std::uint16_t code) { return decode(code, type); };
  if (size_of(type) == 1) return use(static_cast<const std::uint8_t*>(data), decoded);
  use(static_cast<const std::uint16_t*>(data), decoded);
}

/// Writes one element, rounded to nearest; integers saturate, and NaN becomes 0 there.
inline void store(void* data, DType type, std::int64_t at, double value) {
  switch (type) {
    case DType::f64: static_cast<double*>(data)[at] = value; break;
    case DType::f32: static_cast<float*>(data)[at] = static_cast<float>(value); break;
    case DType::f16: static_cast<std::uint16_t*>(data)[at] = to_f16(value); break;
    case DType::bf16: static_cast<std::uint16_t*>(data)[at] = to_bf16(value); break;
    case DType::i8: static_cast<std::int8_t*>(data)[at] = to_small_integer(value, type); break;
    case DType::i4: store_half_byte(data, at, static_cast<std::uint8_t>(to_small_integer(value, type))); break;
    case DType::e2m1: store_half_byte(data, at, static_cast<std::uint8_t>(encode(value, type))); break;
    case DType::boolean: static_cast<std::uint8_t*>(data)[at] = value != 0; break;
    case DType::i32: static_cast<std::int32_t*>(data)[at] = static_cast<std::int32_t>(value); break;
    default:
      if (size_of(type) == 1)
        static_cast<std::uint8_t*>(data)[at] = static_cast<std::uint8_t>(encode(value, type));
      else
        static_cast<std::uint16_t*>(data)[at] = encode(value, type);
  }
}

}  // namespace attest
