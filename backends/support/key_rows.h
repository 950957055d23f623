// Keys or values of one head, which lie in a tensor, in pages, or in the past and a tensor.
#pragma once

#include <cstdint>
#include <optional>
#include <type_traits>

#include "backends/support/key_place.h"
#include "backends/support/tiles.h"
#include "reference/call/tensors.h"

namespace attest::support {

/// Row l of head h and those behind it where they lie; nothing where their type or stride is another than the rows'
/// own.
template <class Real>
std::optional<Rows<Real>> rows_in_place(const ConstTensor& t, std::int64_t b, std::int64_t h, std::int64_t l) {
  constexpr DType kSame = std::is_same_v<Real, double> ? DType::f64 : DType::f32;
  if (t.dtype != kSame || (t.shape[3] != 1 && t.strides[3] != 1)) return std::nullopt;
  return Rows<Real>{static_cast<const Real*>(t.data) + t.offset(b, h, l, 0), t.strides[2]};
}

/// Where the first of `count` keys lies when all of them follow each other in one tensor.
inline std::optional<KeyPlace> place_of_keys(const Inputs& inputs, std::int64_t b, std::int64_t key,
                                             std::int64_t count) {
  const KeyPlace first = find_key(inputs, b, key), last = find_key(inputs, b, key + count - 1);
  if (first.past != last.past || first.batch != last.batch || last.row - first.row != count - 1) return std::nullopt;
  return first;
}

}  // namespace attest::support
