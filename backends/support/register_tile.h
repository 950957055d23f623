// Dense products on tiles of a fused attention: C (+)= A * B with a block of C held in registers.
//
// A general product packs both operands in every call and writes C as often as its depth is divided; here K, V and Q
// are packed once a tile. Written for the vectors of any library; what it must bring:
//
//   struct Simd {
//     using Real, Vector;
//     static constexpr int kLanes, kRegisters;
//     static Vector load(const Real*), set(Real), multiply_add(Vector a, Vector b, Vector c);   a * b + c
//     static void store(Real*, Vector);                                                         any alignment
//   };
#pragma once

#include <algorithm>
#include <cstdint>

#include "backends/support/tiles.h"
#include "backends/support/transpose.h"

namespace attest::support {

template <class Simd>
struct RegisterTile {
  using Real = typename Simd::Real;
  using Vector = typename Simd::Vector;
  static constexpr std::int64_t kLanes = Simd::kLanes;

  /// Rows of C and vectors across: 12 sums in 16 registers, or 24 in 32.
  static constexpr int kRows = 6;
  static constexpr int kVectors = Simd::kRegisters >= 32 ? 4 : 2;
  static constexpr std::int64_t kWidth = kVectors * kLanes;

  /// Where A's elements lie: rows `stride` apart; packed: kRows rows side by side for each step in depth (the last ones
  /// fewer), which needs one address and shorter instructions; or turned: columns `stride` apart.
  enum class Left { rows, packed, turned };

  /// Columns rounded up so that whole vectors cover them.
  static constexpr std::int64_t padded(std::int64_t n, std::int64_t unit = kLanes) {
    return (n + unit - 1) / unit * unit;
  }

  /// Columns of the panel that begins at column c: kWidth, fewer at the end.
  static constexpr std::int64_t panel_width(std::int64_t c, std::int64_t columns) {
    return std::min(kWidth, padded(columns) - c);
  }

  /// `rows` rows of C against `width` columns of B (whole vectors, at most kWidth); B holds `depth` rows.
  template <Left L>
  static void multiply(Rows<Real> a, std::int64_t rows, Rows<Real> b, std::int64_t width, std::int64_t depth, Real* c,
                       std::int64_t c_stride, bool add) {
    if (width == kWidth) return columns<L, kVectors>(a, rows, b, depth, c, c_stride, add);
    for (std::int64_t n = 0; n < width; n += kLanes)
      columns<L, 1>(a, rows, {b.data + n, b.stride}, depth, c + n, c_stride, add);
  }

  /// factor * A, packed for Left::packed.
  static void pack_left(Rows<Real> a, std::int64_t rows, std::int64_t depth, Real factor, Real* panels) {
    for (std::int64_t first = 0; first < rows; first += kRows) {
      const std::int64_t height = std::min<std::int64_t>(kRows, rows - first);
      transpose(a.data + first * a.stride, a.stride, height, depth, factor, panels + first * depth, height);
    }
  }

  /// V in panels: panel, then key, then column. Missing columns become 0.
  static void pack_panels(Rows<Real> v, std::int64_t keys, std::int64_t columns, Real* panels) {
    for (std::int64_t c = 0; c < padded(columns);) {
      const std::int64_t width = panel_width(c, columns), present = std::min(width, columns - c);
      const std::int64_t whole = present / kLanes * kLanes;
      Real* to = panels + c * keys;
      for (std::int64_t j = 0; j < keys; ++j, to += width) {
        const Real* from = v.data + j * v.stride + c;
        for (std::int64_t n = 0; n < whole; n += kLanes) Simd::store(to + n, Simd::load(from + n));
        for (std::int64_t n = whole; n < width; ++n) to[n] = n < present ? from[n] : Real{0};
      }
      c += width;
    }
  }

  /// K^T in panels of kWidth keys: panel, then feature, then key. Missing keys become 0.
  static void pack_transposed(Rows<Real> k, std::int64_t keys, std::int64_t dim, Real* panels) {
    for (std::int64_t first = 0; first < keys; first += kWidth) {
      const std::int64_t present = std::min(kWidth, keys - first);
      transpose(k.data + first * k.stride, k.stride, present, dim, Real{1}, panels, kWidth);
      for (std::int64_t d = 0; d < dim; ++d, panels += kWidth) std::fill(panels + present, panels + kWidth, Real{0});
    }
  }

 private:
  /// Keeps a value in a register. Without it GCC reads B from memory again for each row, which doubles the loads.
  /// Clang doesn't, and takes no class for a register.
  static void pin(Vector& vector) {
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__)
    asm("" : "+v"(vector));
#else
    static_cast<void>(vector);
#endif
  }

  /// sum += A[., t] * B[t, .] for one t.
  template <Left L, int R, int N>
  static void step(Rows<Real> a, const Real* b, Vector (&sum)[R][N]) {
    Vector row[N];
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) {
      row[n] = Simd::load(b + n * kLanes);
      pin(row[n]);
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const Vector factor = Simd::set(L == Left::rows ? a.data[r * a.stride] : a.data[r]);
#pragma GCC unroll 4
      for (int n = 0; n < N; ++n) sum[r][n] = Simd::multiply_add(factor, row[n], sum[r][n]);
    }
  }

  /// One block: R rows and N vectors of columns. A function of its own: inlined, GCC 12 runs out of registers.
  template <Left L, int R, int N>
  [[gnu::noinline]] static void block(Rows<Real> a, Rows<Real> b, std::int64_t depth, Real* c, std::int64_t c_stride,
                                      bool add) {
    constexpr std::int64_t kUnrolled = 4;
    const std::int64_t step_of_a = L == Left::packed ? R : L == Left::turned ? a.stride : 1;
    Vector sum[R][N];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
      for (int n = 0; n < N; ++n) sum[r][n] = Simd::set(Real{0});
    }
    std::int64_t t = 0;
    for (; t + kUnrolled <= depth; t += kUnrolled, a.data += kUnrolled * step_of_a, b.data += kUnrolled * b.stride) {
#pragma GCC unroll 4
      for (std::int64_t u = 0; u < kUnrolled; ++u) {
        step<L, R, N>({a.data + u * step_of_a, a.stride}, b.data + u * b.stride, sum);
      }
    }
    for (; t < depth; ++t, a.data += step_of_a, b.data += b.stride) step<L, R, N>(a, b.data, sum);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
      for (int n = 0; n < N; ++n) {
        Real* to = c + r * c_stride + n * kLanes;
        Simd::store(to, add ? sum[r][n] + Simd::load(to) : sum[r][n]);
      }
    }
  }

  /// All rows against N vectors of columns.
  template <Left L, int N>
  static void columns(Rows<Real> a, std::int64_t rows, Rows<Real> b, std::int64_t depth, Real* c, std::int64_t c_stride,
                      bool add) {
    const std::int64_t next = kRows * (L == Left::packed ? depth : L == Left::turned ? 1 : a.stride);
    for (; rows >= kRows; rows -= kRows, a.data += next, c += kRows * c_stride) {
      block<L, kRows, N>(a, b, depth, c, c_stride, add);
    }
    switch (rows) {
      case 5: return block<L, 5, N>(a, b, depth, c, c_stride, add);
      case 4: return block<L, 4, N>(a, b, depth, c, c_stride, add);
      case 3: return block<L, 3, N>(a, b, depth, c, c_stride, add);
      case 2: return block<L, 2, N>(a, b, depth, c, c_stride, add);
      case 1: return block<L, 1, N>(a, b, depth, c, c_stride, add);
      default: return;
    }
  }
};

}  // namespace attest::support
