#include "harness/cases/tensor_storage.h"

#include <cmath>
#include <utility>

#include "harness/cases/guard_pattern.h"
#include "reference/arithmetic.h"
#include "reference/tensor_place.h"

namespace attest {

TensorStorage::TensorStorage(TensorPlace place, DType dtype)
    : place_(std::move(place)),
      bytes_(static_cast<std::size_t>(*place_.elements) * size_of(dtype)),
      dtype_(dtype),
      element_size_(size_of(dtype)) {
  fill_padding(bytes_, dtype);
}

TensorStorage TensorStorage::boolean(TensorPlace place) {
  TensorStorage storage;
  storage.place_ = std::move(place);
  storage.bytes_.assign(static_cast<std::size_t>(*storage.place_.elements), std::byte{1});
  storage.element_size_ = 1;
  return storage;
}

ConstTensor TensorStorage::view() const {
  return {bytes_.data() + static_cast<std::size_t>(place_.offset) * element_size_, dtype_, place_.shape, place_.strides,
          place_.starts_data()};
}

void TensorStorage::set(std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d, double value) {
  if (std::isfinite(value) && std::fabs(value) > largest_of(dtype_) * (1 + unit_roundoff(dtype_) / 2))
    overflowed_ = value;
  store(bytes_.data(), dtype_, place_.element(b, h, l, d), value);
}

void TensorStorage::set_byte(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j, bool value) {
  bytes_[static_cast<std::size_t>(place_.element(b, h, i, j))] = std::byte{value};
}

}  // namespace attest
