// Squares of a matrix transposed in registers: what packing a tile is made of. Element by element it costs a load, a
// store and an address for each.
#pragma once

#include <cstdint>
#include <cstring>

namespace attest::support {

/// Rows and columns of a square: one vector of 16 bytes, which every machine with vectors has.
template <class Real>
inline constexpr std::int64_t kSquare = 16 / static_cast<std::int64_t>(sizeof(Real));

/// to[c * to_stride + r] = factor * from[r * from_stride + c] for r and c below kSquare. Any alignment.
template <class Real>
void transpose_square(const Real* from, std::int64_t from_stride, Real factor, Real* to, std::int64_t to_stride) {
  typedef Real Vector __attribute__((vector_size(16)));
  const auto load = [&](std::int64_t row) {
    Vector vector;
    std::memcpy(&vector, from + row * from_stride, sizeof vector);
    return vector * factor;
  };
  const auto store = [&](std::int64_t row, Vector vector) {
    std::memcpy(to + row * to_stride, &vector, sizeof vector);
  };
  const Vector a = load(0), b = load(1);
  if constexpr (kSquare<Real> == 2) {
    store(0, __builtin_shufflevector(a, b, 0, 2));
    store(1, __builtin_shufflevector(a, b, 1, 3));
  } else {
    static_assert(kSquare<Real> == 4);
    const Vector c = load(2), d = load(3);
    const Vector ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5),
                 ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    const Vector cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5),
                 cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    store(0, __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5));
    store(1, __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7));
    store(2, __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5));
    store(3, __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7));
  }
}

/// to[c * to_stride + r] = factor * from[r * from_stride + c] for r < rows and c < columns.
template <class Real>
void transpose(const Real* from, std::int64_t from_stride, std::int64_t rows, std::int64_t columns, Real factor,
               Real* to, std::int64_t to_stride) {
  constexpr std::int64_t kStep = kSquare<Real>;
  const std::int64_t whole_columns = rows < kStep ? 0 : columns / kStep * kStep;
  for (std::int64_t c = 0; c < whole_columns; c += kStep) {
    for (std::int64_t r = 0; r < rows; r += kStep) {
      // The last square begins early rather than end late: some elements are written twice.
      const std::int64_t row = r + kStep <= rows ? r : rows - kStep;
      transpose_square(from + row * from_stride + c, from_stride, factor, to + c * to_stride + row, to_stride);
    }
  }
  for (std::int64_t c = whole_columns; c < columns; ++c) {
    for (std::int64_t r = 0; r < rows; ++r) to[c * to_stride + r] = factor * from[r * from_stride + c];
  }
}

}  // namespace attest::support
