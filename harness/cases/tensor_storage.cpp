#include "harness/cases/tensor_storage.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "harness/cases/guard_pattern.h"
#include "reference/arithmetic/arithmetic.h"
#include "reference/call/tensor_place.h"

namespace attest {
namespace {

TensorBytes bytes_for(const TensorPlace& place, DType type) {
  const std::size_t size = bytes_of(type, static_cast<std::size_t>(*place.elements));
  return {size, used_ranges(place, type, size)};
}

}  // namespace

TensorStorage::TensorStorage(TensorPlace place, DType dtype)
    : place_(std::move(place)), bytes_(bytes_for(place_, dtype)), dtype_(dtype) {
  // Storage in 8 bits and less saturates, as those who write caches do.
  saturates_ = is_number(dtype) && !is_wide(dtype);
  if (saturates_) {
    lowest_ = lowest_of(dtype);
    largest_ = largest_of(dtype);
  }
  if (is_floating(dtype)) first_overflow_ = largest_of(dtype) * (1 + unit_roundoff(dtype) / 2);
  for (const ByteRange& range : bytes_.used()) fill_padding(bytes_.part(range), dtype);
}

ConstTensor TensorStorage::view() const {
  return {bytes_.data() + bytes_of(dtype_, static_cast<std::size_t>(place_.offset)), dtype_, place_.shape,
          place_.strides, place_.starts_data()};
}

std::size_t TensorStorage::bytes() const {
  std::size_t sum = 0;
  for (const ByteRange& range : bytes_.used()) sum += range.size();
  return sum;
}

void TensorStorage::set(std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d, double value) {
  if (saturates_ && std::isfinite(value)) value = std::clamp(value, lowest_, largest_);
  if (std::fabs(value) > first_overflow_ && std::isfinite(value)) overflowed_ = value;
  store(bytes_.data(), dtype_, place_.element(b, h, l, d), value);
}

}  // namespace attest
