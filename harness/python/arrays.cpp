#include "harness/python/arrays.h"

#include <cstddef>
#include <cstring>
#include <vector>

#include "backends/backend.h"
#include "harness/python/object_text.h"

namespace attest {
namespace {

using Code = nb::dlpack::dtype_code;

/// The format of a type that NumPy has from the package ml_dtypes alone, where one of 4 bits has a byte; else nullptr.
const Format* find_of_ml_dtypes(nb::dlpack::dtype type) {
  for (const Format& format : kFormats) {
    const bool own = format.dlpack == DlpackCode::bfloat || format.dlpack > DlpackCode::boolean || format.bits < 8;
    if (own && static_cast<std::uint8_t>(format.dlpack) == type.code && format.bits == type.bits) return &format;
  }
  return nullptr;
}

/// Packed sequences have one row axis for the whole batch.
Index4 extents_of(const ConstTensor& view) {
  if (!view.starts) return view.shape;
  return {1, view.shape[1], view.starts[view.shape[0]], view.shape[3]};
}

/// `type` as dlpack calls it, of an object of NumPy that the buffer protocol can't describe.
bool is_numpy_bfloat(const nb::object& object) {
  return nb::hasattr(object, "dtype") && nb::hasattr(object, "view") && nb::hasattr(object, "__array_interface__") &&
         object_text(object.attr("dtype")) == "bfloat16";
}

/// Rows `first` to `end` - 1 of every head.
template <class T>
void copy_elements(const nb::ndarray<nb::ro>& from, const MutableTensor& to, const Index4& shape, std::int64_t first,
                   std::int64_t end) {
  const auto* source = static_cast<const T*>(static_cast<const void*>(from.data()));
  T* target = static_cast<T*>(to.data);
  Index4 step{};
  for (std::size_t axis = 0; axis < 4 && axis < from.ndim(); ++axis) step[axis] = from.stride(axis);
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    for (std::int64_t h = 0; h < shape[1]; ++h) {
      for (std::int64_t l = first; l < end; ++l) {
        const T* row = source + b * step[0] + h * step[1] + l * step[2];
        T* out = target + b * to.strides[0] + h * to.strides[1] + l * to.strides[2];
        if (step[3] == 1 && to.strides[3] == 1 && shape[3] > 0) {
          std::memcpy(out, row, static_cast<std::size_t>(shape[3]) * sizeof(T));
          continue;
        }
        for (std::int64_t d = 0; d < shape[3]; ++d) out[d * to.strides[3]] = row[d * step[3]];
      }
    }
  }
}

}  // namespace

nb::dlpack::dtype type_of(DType type) {
  if (type == DType::boolean) return kBool;
  const Format& format = format_of(type);
  return {static_cast<std::uint8_t>(format.dlpack), static_cast<std::uint8_t>(format.bits), 1};
}

std::string name_of(nb::dlpack::dtype type) {
  const std::string bits = std::to_string(type.bits);
  switch (static_cast<Code>(type.code)) {
    case Code::Int: return "int" + bits;
    case Code::UInt: return "uint" + bits;
    case Code::Float: return "float" + bits;
    case Code::Bfloat: return "bfloat" + bits;
    case Code::Complex: return "complex" + bits;
    case Code::Bool: return "bool";
    default: return "type " + std::to_string(type.code) + " of DLPack with " + bits + " bits";
  }
}

ArrayKind::ArrayKind(nb::object tensors) {
  if (nb::isinstance<nb::str>(tensors)) {
    const auto name = nb::cast<std::string>(tensors);
    if (name == "numpy") return;
    library_ = name == "torch" ? Library::torch : Library::dlpack;
    if (name == "torch" || name == "dlpack") return;
  } else if (PyCallable_Check(tensors.ptr())) {
    library_ = Library::other;
    convert_ = std::move(tensors);
    return;
  }
  throw nb::type_error(
      "tensors: \"numpy\", \"torch\", \"dlpack\" or a function such as jax.dlpack.from_dlpack is wanted");
}

nb::object ArrayKind::of(const void* data, nb::dlpack::dtype type, std::span<const std::int64_t> shape,
                         std::span<const std::int64_t> strides, bool writable) const {
  static std::byte nothing[16];  // empty tensors may have no address
  void* address = data ? const_cast<void*>(data) : nothing;
  const std::vector<std::size_t> extents(shape.begin(), shape.end());
  const nb::object owner = nb::none();  // the harness's; without one, nanobind would copy
  const auto shown = [&](auto array) { return nb::cast(array, nb::rv_policy::reference); };
  switch (library_) {
    case Library::numpy: {
      const Format* const format = find_of_ml_dtypes(type);
      const nb::dlpack::dtype bits = {static_cast<std::uint8_t>(Code::UInt), type.bits, 1};
      const nb::dlpack::dtype seen = format ? bits : type;
      nb::object array = writable ? shown(nb::ndarray<nb::numpy>(address, shape.size(), extents.data(), owner,
                                                                 strides.data(), seen, nb::device::cpu::value))
                                  : shown(nb::ndarray<nb::numpy, nb::ro>(address, shape.size(), extents.data(), owner,
                                                                         strides.data(), seen, nb::device::cpu::value));
      if (!format) return array;
      static PyObject* const view = PyUnicode_InternFromString("view");
      return array.attr(view)(nb::module_::import_("ml_dtypes").attr(std::string(format->numpy).c_str()));
    }
    case Library::torch:
      return shown(nb::ndarray<nb::pytorch>(address, shape.size(), extents.data(), owner, strides.data(), type,
                                            nb::device::cpu::value));
    case Library::dlpack:
    case Library::other: break;
  }
  nb::object array = shown(nb::ndarray<nb::array_api>(address, shape.size(), extents.data(), owner, strides.data(),
                                                      type, nb::device::cpu::value));
  return library_ == Library::other ? convert_(array) : array;
}

namespace {

/// Codes of 4 bits in a byte each, which NumPy owns.
nb::object unpacked(const ConstTensor& view) {
  const Index4 shape = extents_of(view);
  auto* kept = new std::vector<std::uint8_t>();
  const nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<std::uint8_t>*>(p); });
  const HalfBytes codes(view.data);
  each_index(shape, [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
    const std::uint8_t code = codes[element_at(view.strides, nullptr, b, h, l, d)];
    const bool is_integer = view.dtype == DType::i4;
    kept->push_back(is_integer ? static_cast<std::uint8_t>(HalfBytes::to_integer(code)) : code);
  });
  const std::vector<std::size_t> extents(shape.begin(), shape.end());
  const nb::object bytes =
      nb::cast(nb::ndarray<nb::numpy, std::uint8_t>(kept->data(), extents.size(), extents.data(), owner));
  return bytes.attr("view")(nb::module_::import_("ml_dtypes").attr(std::string(format_of(view.dtype).numpy).c_str()));
}

}  // namespace

nb::object ArrayKind::of(const ConstTensor& view, bool writable) const {
  if (is_packed_in_pairs(view.dtype)) {
    if (library_ == Library::numpy) return unpacked(view);
    Index4 shape = extents_of(view), strides = view.strides;
    shape[3] = (shape[3] + 1) / 2;
    for (std::size_t axis = 0; axis < 3; ++axis) strides[axis] /= 2;
    return of(view.data, {static_cast<std::uint8_t>(Code::UInt), 8, 1}, shape, strides, writable);
  }
  return of(view.data, type_of(view.dtype), extents_of(view), view.strides, writable);
}

ReturnedArray::ReturnedArray(nb::object object, DType wanted) : object_(std::move(object)) {
  const bool bfloat = wanted == DType::bf16 && is_numpy_bfloat(object_);
  nb::object seen = object_;
  if (bfloat) seen = object_.attr("view")("uint16");
  if (!nb::try_cast(seen, array_)) {
    PyErr_Clear();
    throw BackendError("returned " + object_text(object_.type().attr("__name__")) + ", which is no array");
  }
  type_ = bfloat ? type_of(DType::bf16) : array_.dtype();
}

std::string ReturnedArray::shape_text() const {
  std::string text;
  for (std::size_t axis = 0; axis < array_.ndim(); ++axis)
    text += (axis ? ", " : "(") + std::to_string(array_.shape(axis));
  return array_.ndim() == 0 ? "()" : text + (array_.ndim() == 1 ? ",)" : ")");
}

bool ReturnedArray::has_shape(std::span<const std::int64_t> wanted) const {
  for (std::size_t axis = 0; axis < wanted.size(); ++axis) {
    const std::int64_t extent = axis < array_.ndim() ? static_cast<std::int64_t>(array_.shape(axis)) : 1;
    if (extent != wanted[axis]) return false;
  }
  return array_.ndim() == wanted.size() || (array_.ndim() + 1 == wanted.size() && wanted.back() == 1);
}

std::size_t ReturnedArray::span_bytes() const {
  std::int64_t last = 0;
  for (std::size_t axis = 0; axis < array_.ndim(); ++axis) {
    if (array_.shape(axis) == 0) return 0;
    last += (static_cast<std::int64_t>(array_.shape(axis)) - 1) * array_.stride(axis);
  }
  return static_cast<std::size_t>(last + 1) * array_.itemsize();
}

bool ReturnedArray::overlaps(const void* data, std::size_t bytes) const {
  const auto first = reinterpret_cast<std::uintptr_t>(data), mine = reinterpret_cast<std::uintptr_t>(begin());
  return bytes > 0 && span_bytes() > 0 && mine < first + bytes && first < mine + span_bytes();
}

void ReturnedArray::copy_to(const MutableTensor& to, std::int64_t gap) const {
  const ConstTensor view{to.data, to.dtype, to.shape, to.strides, to.starts};
  const Index4 shape = extents_of(view);
  const auto copy_rows = [&](std::int64_t first, std::int64_t end) {
    switch (size_of(to.dtype)) {
      case 2: return copy_elements<std::uint16_t>(array_, to, shape, first, end);
      case 4: return copy_elements<std::uint32_t>(array_, to, shape, first, end);
      default: return copy_elements<std::uint64_t>(array_, to, shape, first, end);
    }
  };
  if (!to.starts || gap == 0) return copy_rows(0, shape[2]);
  for (std::int64_t b = 0; b < to.shape[0]; ++b)
    copy_rows(to.starts[b], to.starts[b + 1] - (b + 1 < to.shape[0] ? gap : 0));
}

}  // namespace attest
