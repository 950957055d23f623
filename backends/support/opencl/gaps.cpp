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

template <class View>
void WithoutGaps::pack(View& view, std::size_t element_size) {
  if (!view.data || !mostly_gaps(view.shape, element_size, static_cast<double>(span_bytes(view)))) return;
  Index4 n = view.shape;
  for (std::size_t axis = 0; axis < 4; ++axis) {
    if (view.strides[axis] == 0) n[axis] = std::min<std::int64_t>(n[axis], 1);  // broadcast axes stay so
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
    if (view.strides[axis] != 0) view.strides[axis] = packed[axis];
  }
}

WithoutGaps::WithoutGaps(const Inputs& inputs) : inputs_(inputs) {
  for (ConstTensor* tensor : {&inputs_.q, &inputs_.k, &inputs_.v}) {
    if (!tensor->starts) pack(*tensor, size_of(tensor->dtype));
  }
  if (inputs_.mask) pack(*inputs_.mask, inputs_.mask->additive ? size_of(inputs_.mask->dtype) : 1);
}

}  // namespace attest::support
