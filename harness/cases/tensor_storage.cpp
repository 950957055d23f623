#include "harness/cases/tensor_storage.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "harness/cases/guard_pattern.h"
#include "reference/arithmetic/arithmetic.h"
#include "reference/call/tensor_place.h"

namespace attest {
namespace {

TensorBytes bytes_for(const TensorPlace& place, std::size_t element_size) {
  const std::size_t size = static_cast<std::size_t>(*place.elements) * element_size;
  return {size, used_ranges(place, element_size, size)};
}

}  // namespace

TensorStorage::TensorStorage(TensorPlace place, DType dtype)
    : place_(std::move(place)), bytes_(bytes_for(place_, size_of(dtype))), dtype_(dtype) {
  for (const ByteRange& range : bytes_.used()) fill_padding(bytes_.part(range), dtype);
}

ConstTensor TensorStorage::view() const {
  return {bytes_.data() + static_cast<std::size_t>(place_.offset) * size_of(dtype_), dtype_, place_.shape,
          place_.strides, place_.starts_data()};
}

std::size_t TensorStorage::bytes() const {
  std::size_t sum = 0;
  for (const ByteRange& range : bytes_.used()) sum += range.size();
  return sum;
}

void TensorStorage::set(std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d, double value) {
  // 8-bit storage saturates, as those who write caches do.
  if (is_storage(dtype_) && !is_wide(dtype_) && std::isfinite(value))
    value = std::clamp(value, lowest_of(dtype_), largest_of(dtype_));
  if (is_floating(dtype_) && std::isfinite(value) &&
      std::fabs(value) > largest_of(dtype_) * (1 + unit_roundoff(dtype_) / 2))
    overflowed_ = value;
  store(bytes_.data(), dtype_, place_.element(b, h, l, d), value);
}

}  // namespace attest
