// Dense products on tiles, written with Eigen's packets: C (+)= A * B with a block of C held in registers.
//
// Eigen's general product spends a tenth of a fused attention on packing both operands for every call and, as GCC 12
// compiles it for AVX2, runs its inner kernel at 0.87 of the roof; this one packs K and V once a tile.
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cstdint>

namespace attest::register_tile {

template <class Real>
using Packet = typename Eigen::internal::packet_traits<Real>::type;

template <class Real>
inline constexpr int kLanes = Eigen::internal::packet_traits<Real>::size;

/// Rows of C and packets across: 12 accumulators of 16 registers, or 24 of 32.
inline constexpr int kRows = 6;
inline constexpr int kPackets = EIGEN_ARCH_DEFAULT_NUMBER_OF_REGISTERS >= 32 ? 4 : 2;

/// Keeps a value in a register. Without it GCC reads B from memory again for each row, which doubles the loads.
template <class P>
void pin(P& packet) {
#if defined(__GNUC__) && defined(__x86_64__)
  asm("" : "+v"(packet));
#else
  static_cast<void>(packet);
#endif
}

/// sum += A[., t] * B[t, .] for one t.
template <class Real, int R, int N>
void step(const Real* a, std::int64_t a_stride, const Real* b, Packet<Real> (&sum)[R][N]) {
  using namespace Eigen::internal;
  using P = Packet<Real>;
  P row[N];
#pragma GCC unroll 4
  for (int n = 0; n < N; ++n) {
    row[n] = ploadu<P>(b + n * kLanes<Real>);
    pin(row[n]);
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    const P factor = pset1<P>(a[r * a_stride]);
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) sum[r][n] = pmadd(factor, row[n], sum[r][n]);
  }
}

/// One block: R rows and N packets of columns. B holds `depth` rows, `b_stride` apart.
template <class Real, int R, int N>
void block(const Real* a, std::int64_t a_stride, const Real* b, std::int64_t b_stride, std::int64_t depth, Real* c,
           std::int64_t c_stride, bool add) {
  using namespace Eigen::internal;
  using P = Packet<Real>;
  constexpr std::int64_t kUnrolled = 4;
  P sum[R][N];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) sum[r][n] = pset1<P>(Real{0});
  }
  std::int64_t t = 0;
  for (; t + kUnrolled <= depth; t += kUnrolled, b += kUnrolled * b_stride) {
#pragma GCC unroll 4
    for (std::int64_t u = 0; u < kUnrolled; ++u) step<Real, R, N>(a + t + u, a_stride, b + u * b_stride, sum);
  }
  for (; t < depth; ++t, b += b_stride) step<Real, R, N>(a + t, a_stride, b, sum);
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) {
      Real* to = c + r * c_stride + n * kLanes<Real>;
      pstoreu(to, add ? padd(ploadu<P>(to), sum[r][n]) : sum[r][n]);
    }
  }
}

/// All rows against N packets of columns.
template <class Real, int N>
void columns(const Real* a, std::int64_t a_stride, std::int64_t rows, const Real* b, std::int64_t b_stride,
             std::int64_t depth, Real* c, std::int64_t c_stride, bool add) {
  std::int64_t r = 0;
  for (; r + kRows <= rows; r += kRows) {
    block<Real, kRows, N>(a + r * a_stride, a_stride, b, b_stride, depth, c + r * c_stride, c_stride, add);
  }
  a += r * a_stride;
  c += r * c_stride;
  switch (rows - r) {
    case 5: block<Real, 5, N>(a, a_stride, b, b_stride, depth, c, c_stride, add); break;
    case 4: block<Real, 4, N>(a, a_stride, b, b_stride, depth, c, c_stride, add); break;
    case 3: block<Real, 3, N>(a, a_stride, b, b_stride, depth, c, c_stride, add); break;
    case 2: block<Real, 2, N>(a, a_stride, b, b_stride, depth, c, c_stride, add); break;
    case 1: block<Real, 1, N>(a, a_stride, b, b_stride, depth, c, c_stride, add); break;
    default: break;
  }
}

/// Columns rounded up so that whole packets cover them.
template <class Real>
constexpr std::int64_t padded(std::int64_t n, int packets = 1) {
  const std::int64_t unit = std::int64_t{kLanes<Real>} * packets;
  return (n + unit - 1) / unit * unit;
}

/// Columns of the panel that begins at column c: kPackets packets, fewer at the end.
template <class Real>
constexpr std::int64_t panel_width(std::int64_t c, std::int64_t columns) {
  return std::min(std::int64_t{kPackets} * kLanes<Real>, padded<Real>(columns) - c);
}

/// V in panels of kPackets packets of columns: panel, then key, then column. Missing columns become 0.
template <class Real>
void pack_panels(const Real* v, std::int64_t stride, std::int64_t keys, std::int64_t columns, Real* panels) {
  for (std::int64_t c = 0; c < padded<Real>(columns);) {
    const std::int64_t width = panel_width<Real>(c, columns), present = std::min(width, columns - c);
    Real* to = panels + c * keys;
    const std::int64_t whole = present / kLanes<Real> * kLanes<Real>;
    for (std::int64_t j = 0; j < keys; ++j, to += width) {
      const Real* from = v + j * stride + c;
      for (std::int64_t n = 0; n < whole; n += kLanes<Real>) {
        Eigen::internal::pstoreu(to + n, Eigen::internal::ploadu<Packet<Real>>(from + n));
      }
      for (std::int64_t n = whole; n < width; ++n) to[n] = n < present ? from[n] : Real{0};
    }
    c += width;
  }
}

/// K^T in panels of kPackets packets of keys: panel, then feature, then key. Missing keys become 0.
template <class Real>
void pack_transposed(const Real* k, std::int64_t stride, std::int64_t keys, std::int64_t dim, Real* panels) {
  using namespace Eigen::internal;
  using P = Packet<Real>;
  constexpr int kWidth = kLanes<Real>;
  const std::int64_t panel_width = std::int64_t{kPackets} * kWidth;
  for (std::int64_t first = 0; first < padded<Real>(keys, kPackets); first += kWidth) {
    Real* to = panels + first / panel_width * panel_width * dim + first % panel_width;
    std::int64_t d = 0;
    if (first + kWidth <= keys) {
      for (; d + kWidth <= dim; d += kWidth) {
        PacketBlock<P, kWidth> square;
        for (int n = 0; n < kWidth; ++n) square.packet[n] = ploadu<P>(k + (first + n) * stride + d);
        ptranspose(square);
        for (int n = 0; n < kWidth; ++n) pstoreu(to + (d + n) * panel_width, square.packet[n]);
      }
    }
    for (; d < dim; ++d) {
      for (int n = 0; n < kWidth; ++n) {
        to[d * panel_width + n] = first + n < keys ? k[(first + n) * stride + d] : Real{0};
      }
    }
  }
}

}  // namespace attest::register_tile
