// Tensors of a call as arrays of Python and back, without a copy on the host.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <span>
#include <string>

#include "reference/call/tensors.h"

namespace attest {

namespace nb = nanobind;

/// What a callable of Python takes: how a tensor of the host is shown to it.
class ArrayKind {
 public:
  /// "numpy", "torch", "dlpack", or a function from an object with __dlpack__ to a tensor of another library. Throws
  /// nb::type_error for anything else.
  explicit ArrayKind(nb::object tensors);

  /// Views of the host's memory; NumPy's are read only, unless `writable`. `data` outlives the array. Masks and the
  /// like are bool.
  nb::object of(const void* data, nb::dlpack::dtype type, std::span<const std::int64_t> shape,
                std::span<const std::int64_t> strides, bool writable = false) const;
  /// A packed view is 1, heads, rows, features. Elements of 4 bits are a copy in ml_dtypes' types for NumPy, and pairs
  /// of them in bytes for other libraries.
  nb::object of(const ConstTensor& view, bool writable = false) const;

 private:
  enum class Library { numpy, torch, dlpack, other } library_ = Library::numpy;
  nb::object convert_;
};

inline constexpr nb::dlpack::dtype kBool = {static_cast<std::uint8_t>(nb::dlpack::dtype_code::Bool), 8, 1};
nb::dlpack::dtype type_of(DType type);
/// "float32", "bfloat16", "bool", ...
std::string name_of(nb::dlpack::dtype type);

/// A tensor that a callable gave back, seen where it lies. Any library that speaks DLPack or the buffer protocol.
class ReturnedArray {
 public:
  /// `wanted`: the type that is expected, whatever it has. Throws BackendError for what is no array.
  ReturnedArray(nb::object object, DType wanted);

  nb::dlpack::dtype type() const { return type_; }
  bool on_host() const { return array_.device_type() == nb::device::cpu::value; }
  std::string shape_text() const;
  /// With axes of extent 1 at the end that `wanted` has and this hasn't, as an lse without its last axis.
  bool has_shape(std::span<const std::int64_t> wanted) const;
  /// Whether a byte of it lies in the `bytes` at `data`.
  bool overlaps(const void* data, std::size_t bytes) const;
  /// Where it lies, on whatever device: its first byte and how many its strides span.
  const std::byte* begin() const { return static_cast<const std::byte*>(static_cast<const void*>(array_.data())); }
  std::size_t span_bytes() const;
  /// Element by element into a view of the same type and, but for axes of extent 1, the same shape. Of packed sequences
  /// the `gap` rows between two belong to none and stay as they are.
  void copy_to(const MutableTensor& to, std::int64_t gap) const;

 private:
  nb::object object_;
  nb::ndarray<nb::ro> array_;
  nb::dlpack::dtype type_{};
};

}  // namespace attest
