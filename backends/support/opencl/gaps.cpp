#include "backends/support/opencl/gaps.h"

#include <algorithm>
#include <cstring>

namespace attest::support {
namespace {

/// Less than this is copied as it lies: gaps of ordinary strides cost little.
constexpr double kSpan = 64 << 20, kGaps = 16;

double elements_of(const Index4& shape) {
  double elements = 1;
  for (const std::int64_t n : shape) elements *= static_cast<double>(n);
  return elements;
}

}  // namespace

bool mostly_gaps(const Index4& shape, std::size_t element_size, double span) {
  return span > kSpan && span > kGaps * elements_of(shape) * static_cast<double>(element_size);
}

double device_bytes(const TensorPlace& place, std::size_t element_size) {
  const auto size = static_cast<double>(element_size);
  const double span = static_cast<double>(*place.elements - place.offset) * size;
  const bool packed = place.starts.empty() && mostly_gaps(place.shape, element_size, span);
  return packed ? elements_of(place.shape) * size : span;
}

namespace {

bool lies_dense(const ConstTensor& view) {
  std::int64_t step = 1;
  for (std::size_t axis = 4; axis-- > 0;) {
    if (view.shape[axis] != 1 && view.strides[axis] != step) return false;
    step *= view.shape[axis];
  }
  return true;
}

}  // namespace

void WithoutGaps::pack(TensorId id, bool expand) {
  ConstTensor view = inputs_.at(id);
  const std::size_t element_size = size_of(view.dtype);
  Index4 n = view.shape;
  for (std::size_t axis = 0; axis < 4; ++axis) {
    if (!expand && view.strides[axis] == 0) n[axis] = std::min<std::int64_t>(n[axis], 1);  // broadcast axes stay so
  }
  std::vector<std::byte>& dense =
      packed_.emplace_back(static_cast<std::size_t>(n[0] * n[1] * n[2] * n[3]) * element_size);
  std::byte* to = dense.data();
  for (std::int64_t b = 0; b < n[0]; ++b) {
    for (std::int64_t h = 0; h < n[1]; ++h) {
      for (std::int64_t l = 0; l < n[2]; ++l) {
        for (std::int64_t d = 0; d < n[3]; ++d, to += element_size) {
          const auto from = static_cast<std::size_t>(view.offset(b, h, l, d)) * element_size;
          std::memcpy(to, static_cast<const std::byte*>(view.data) + from, element_size);
        }
      }
    }
  }
  view.data = dense.data();
  const Index4 packed = {n[1] * n[2] * n[3], n[2] * n[3], n[3], 1};
  for (std::size_t axis = 0; axis < 4; ++axis) {
    if (expand || view.strides[axis] != 0) view.strides[axis] = packed[axis];
  }
  inputs_.set(id, view);
}

WithoutGaps::WithoutGaps(const Inputs& inputs) : inputs_(inputs) {
  for (const TensorId id : {TensorId::q, TensorId::k, TensorId::v, TensorId::mask}) {
    const ConstTensor& view = inputs_.at(id);
    if (!view.data || view.starts) continue;
    if (mostly_gaps(view.shape, size_of(view.dtype), static_cast<double>(span_bytes(view)))) pack(id, false);
  }
  // Kernels read these without strides.
  for (const TensorId id :
       {TensorId::past_k, TensorId::past_v, TensorId::page_table, TensorId::blocks, TensorId::keep}) {
    if (inputs_.has(id) && !lies_dense(inputs_.at(id))) pack(id, true);
  }
}

}  // namespace attest::support
