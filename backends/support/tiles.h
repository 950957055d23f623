// Moving rows of strided tensors into dense tiles.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "reference/view.h"

namespace attest::support {

/// Rows of a matrix: `data` + row * `stride`, columns side by side.
template <class Real>
struct Rows {
  const Real* data = nullptr;
  std::int64_t stride = 0;
};

/// Rows [first, first + count) of head (b, h). Without a copy where the columns lie side by side, else through `buffer`.
template <class Real>
Rows<Real> rows_of(const View<const Real>& view, std::int64_t b, std::int64_t h, std::int64_t first,
                   std::int64_t count, std::vector<Real>& buffer) {
  const std::int64_t columns = view.shape[3];
  if (columns == 1 || view.strides[3] == 1) return {&view(b, h, first, 0), view.strides[2]};
  buffer.resize(static_cast<std::size_t>(count * columns));
  for (std::int64_t l = 0; l < count; ++l) {
    for (std::int64_t d = 0; d < columns; ++d) {
      buffer[static_cast<std::size_t>(l * columns + d)] = view(b, h, first + l, d);
    }
  }
  return {buffer.data(), columns};
}

/// True when a number in the rows is NaN or infinite. Looks at the exponent's bits, which vectorises.
template <class Real>
bool has_non_finite(Rows<Real> rows, std::int64_t count, std::int64_t columns) {
  using Bits = std::conditional_t<sizeof(Real) == 4, std::uint32_t, std::uint64_t>;
  constexpr Bits kExponent = sizeof(Real) == 4 ? Bits{0x7f800000u} : static_cast<Bits>(0x7ff0000000000000u);
  Bits largest = 0;
  if (rows.stride == columns) {  // one long row
    columns *= count;
    count = 1;
  }
  for (std::int64_t l = 0; l < count; ++l) {
    const Real* row = rows.data + l * rows.stride;
    for (std::int64_t c = 0; c < columns; ++c) {
      Bits bits = 0;
      std::memcpy(&bits, row + c, sizeof bits);
      largest = std::max(largest, static_cast<Bits>(bits & kExponent));
    }
  }
  return largest == kExponent;
}

}  // namespace attest::support
