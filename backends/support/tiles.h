// Tiles, and rows of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "reference/call/call.h"

namespace attest::support {

/// Rows of a matrix: `data` + row * `stride`, columns side by side.
template <class Real>
struct Rows {
  const Real* data = nullptr;
  std::int64_t stride = 0;
};

/// The largest tile of a fused kernel: rows of queries, keys, and rows of queries whose scores exist at a time.
struct TileShape {
  std::int64_t queries, keys, block;
};

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

/// a / b, rounded up.
inline std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Rows of a query tile, whole blocks of `block` and about `max_rows` at the most: the tiles of a head are alike, and
/// small enough that each of `workers` gets several.
inline std::int64_t even_tile_rows(const Call& problem, int workers, std::int64_t max_rows, std::int64_t block) {
  constexpr std::int64_t kTasksForEach = 8, kMinBlocks = 4;
  const std::int64_t rows = std::max<std::int64_t>(problem.query_length, 1);
  const std::int64_t heads = std::max<std::int64_t>(problem.batch * problem.query_heads, 1);
  const std::int64_t wanted = std::min(divide_up(kTasksForEach * workers, heads), rows / (kMinBlocks * block));
  const std::int64_t tiles = std::max(divide_up(rows, max_rows), wanted);
  return divide_up(divide_up(rows, tiles), block) * block;
}

}  // namespace attest::support
