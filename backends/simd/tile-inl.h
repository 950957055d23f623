// A tile of attention in registers, for one instruction set: included once for each by kernels.cpp.
//
// Products hold kRows rows and kVectors vectors of sums in registers. The maximum that weights are relative to lags
// behind (kLag), so that a tile seldom rescales what was summed.
#if defined(ATTEST_BACKENDS_SIMD_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEST_BACKENDS_SIMD_TILE_INL_H_
#undef ATTEST_BACKENDS_SIMD_TILE_INL_H_
#else
#define ATTEST_BACKENDS_SIMD_TILE_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <limits>

#include "backends/simd/exp-inl.h"
#include "backends/simd/kernels.h"

HWY_BEFORE_NAMESPACE();
namespace attest::simd::HWY_NAMESPACE {

// 16 sums in 32 registers, or 12 in 16. Rows that are no multiple of 6 come in some groups of 4, not with padding:
// 8 sums still keep both units for multiply-adds busy.
#undef ATTEST_SIMD_VECTORS
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64
#define ATTEST_SIMD_VECTORS 4
inline constexpr int kRows = 4, kVectors = 4;
#else
#define ATTEST_SIMD_VECTORS 2
inline constexpr int kRows = 6, kVectors = 2;
#endif
inline constexpr int kFewerRows = static_cast<int>(kLeastRows);

// Without instructions for it Highway takes infinities and NaN in f16 for numbers.
#undef ATTEST_SIMD_WIDENS_F16
#if HWY_TARGET <= HWY_AVX2 || HWY_ARCH_ARM_A64
#define ATTEST_SIMD_WIDENS_F16 1
#else
#define ATTEST_SIMD_WIDENS_F16 0
#endif

template <class Real>
using TagOf = hn::ScalableTag<Real>;
template <class Real>
using VectorOf = hn::Vec<TagOf<Real>>;
template <class Real>
inline constexpr std::int64_t kLanes = static_cast<std::int64_t>(hn::MaxLanes(TagOf<Real>()));
template <class Real>
inline constexpr std::int64_t kWidth = kVectors* kLanes<Real>;
/// A register tile.
template <class Real, int R, int N>
struct Sums {
  VectorOf<Real> at[R][N];
};

/// Keeps a value in a register. Without it GCC reads B from memory again for each row, which doubles the loads. Clang
/// doesn't, and takes no class for a register.
template <class V>
HWY_INLINE void Pin(V& vector) {
#if HWY_ARCH_X86 && HWY_COMPILER_GCC_ACTUAL
  asm("" : "+v"(vector.raw));
#else
  static_cast<void>(vector);
#endif
}

/// sums += A * B: R rows of A, a_stride apart (or columns, where it is turned), and `depth` rows of B with N vectors
/// each, b_stride apart.
template <int R, int N, bool kTurned = false, class Real>
HWY_INLINE void Multiply(const Real* HWY_RESTRICT a, std::int64_t a_stride, const Real* HWY_RESTRICT b,
                         std::int64_t b_stride, std::int64_t depth, Sums<Real, R, N>& sums) {
  const TagOf<Real> tag;
  const auto step = [&](std::int64_t t, const Real* row) HWY_ATTR {
    VectorOf<Real> right[N];
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) {
      right[n] = hn::LoadU(tag, row + n * kLanes<Real>);
      Pin(right[n]);
    }
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const auto left = hn::Set(tag, kTurned ? a[t * a_stride + r] : a[r * a_stride + t]);
#pragma GCC unroll 4
      for (int n = 0; n < N; ++n) sums.at[r][n] = hn::MulAdd(left, right[n], sums.at[r][n]);
    }
  };
  constexpr std::int64_t kUnrolled = 4;
  std::int64_t t = 0;
  for (; t + kUnrolled <= depth; t += kUnrolled, b += kUnrolled * b_stride) {
#pragma GCC unroll 4
    for (std::int64_t u = 0; u < kUnrolled; ++u) step(t + u, b + u * b_stride);
  }
  for (; t < depth; ++t, b += b_stride) step(t, b);
}

/// Moves the maximum of a row on to `most`, where that is larger, and shrinks what was summed under the old one.
template <class Real>
HWY_NOINLINE void Raise(const Tile<Real>& tile, std::int64_t row, Real most) {
  if (!(most > tile.maximum[row])) return;
  const TagOf<Real> tag;
  Real* sum = tile.sum + row * kLanes<Real>;
  if (hn::AllTrue(tag, hn::Eq(hn::LoadU(tag, sum), hn::Zero(tag)))) {  // nothing was summed
    tile.maximum[row] = most;
    return;
  }
  const auto shrink = Exp(tag, hn::Set(tag, tile.maximum[row] - most));
  const auto scale = [&](Real* numbers, std::int64_t n) HWY_ATTR {
    for (std::int64_t j = 0; j < n; j += kLanes<Real>)
      hn::StoreU(hn::Mul(hn::LoadU(tag, numbers + j), shrink), tag, numbers + j);
  };
  scale(tile.out + row * tile.out_stride, tile.out_stride);
  scale(sum, kLanes<Real>);
  tile.maximum[row] = most;
}

/// Keys of the tile up to the last one that a group of rows sees.
template <int R, class Real>
HWY_INLINE std::int64_t KeysOfGroup(const Tile<Real>& tile, std::int64_t row) {
  return tile.last ? *std::max_element(tile.last + row, tile.last + row + R) : tile.keys;
}

/// Calls `function` with the first row of each group, and the number of its rows as a constant.
template <class Function>
HWY_INLINE void EachGroup(std::int64_t rows, const Function& function) {
  std::int64_t row = 0;
  for (; (rows - row) % kRows != 0; row += kFewerRows) function.template operator()<kFewerRows>(row);
  for (; row < rows; row += kRows) function.template operator()<kRows>(row);
}

/// out += A * B, as Multiply has them; out's rows lie out_stride apart.
template <int R, int N, bool kTurned = false, class Real>
HWY_INLINE void AddProduct(const Real* HWY_RESTRICT a, std::int64_t a_stride, const Real* HWY_RESTRICT b,
                           std::int64_t b_stride, std::int64_t depth, Real* out, std::int64_t out_stride) {
  const TagOf<Real> tag;
  Sums<Real, R, N> sums;
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) sums.at[r][n] = hn::LoadU(tag, out + r * out_stride + n * kLanes<Real>);
  }
  Multiply<R, N, kTurned>(a, a_stride, b, b_stride, depth, sums);
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) hn::StoreU(sums.at[r][n], tag, out + r * out_stride + n * kLanes<Real>);
  }
}

/// Calls `function` with a whole number of vectors, at most kVectors, as a constant.
template <class Function>
HWY_INLINE void WithVectors(std::int64_t vectors, const Function& function) {
  switch (vectors) {
    case 1: function.template operator()<1>(); break;
    case 2: function.template operator()<2>(); break;
#if ATTEST_SIMD_VECTORS == 4
    case 3: function.template operator()<3>(); break;
    case 4: function.template operator()<4>(); break;
#endif
    default: break;
  }
}

/// A function of its own: with the softmax behind it GCC 12 runs out of registers.
template <int R, int N, class Real>
HWY_NOINLINE void ScoreGroup(const Tile<Real>& tile, std::int64_t row, std::int64_t key) {
  const TagOf<Real> tag;
  Sums<Real, R, N> scores;
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) scores.at[r][n] = hn::Zero(tag);
  }
  Multiply(tile.queries + row * tile.key_dim, tile.key_dim, tile.keys_packed + key * tile.key_dim, kWidth<Real>,
           tile.key_dim, scores);
  Real* to = tile.weights + row * kTileKeys + key;
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) hn::StoreU(scores.at[r][n], tag, to + r * kTileKeys + n * kLanes<Real>);
  }
}

/// Every group of rows against every panel of the tile's keys, as far as it sees them.
template <class Real>
void Scores(const Tile<Real>& tile) {
  for (std::int64_t key = 0; key < tile.keys; key += kWidth<Real>) {
    EachGroup(tile.rows, [&]<int R>(std::int64_t row) {
      const std::int64_t keys = std::min(KeysOfGroup<R>(tile, row) - key, kWidth<Real>);
      if (keys <= 0) return;
      WithVectors((keys + kLanes<Real> - 1) / kLanes<Real>, [&]<int N>() { ScoreGroup<R, N>(tile, row, key); });
    });
  }
}

template <int R, int N, class Real>
HWY_NOINLINE void AccumulateGroup(const Tile<Real>& tile, std::int64_t row, std::int64_t column, const Real* values,
                                  std::int64_t values_stride) {
  const std::int64_t keys = KeysOfGroup<R>(tile, row);
  if (keys <= 0) return;
  AddProduct<R, N>(tile.weights + row * kTileKeys, kTileKeys, values, values_stride, keys,
                   tile.out + row * tile.out_stride + column, tile.out_stride);
}

/// O += P * V.
template <class Real>
void Accumulate(const Tile<Real>& tile) {
  for (std::int64_t column = 0; column < tile.out_stride; column += kWidth<Real>) {
    const std::int64_t width = std::min(kWidth<Real>, tile.out_stride - column);
    const Real* values = tile.values + column * tile.values_loaded + tile.value_key * width;
    EachGroup(tile.rows, [&]<int R>(std::int64_t row) {
      WithVectors(width / kLanes<Real>, [&]<int N>() { AccumulateGroup<R, N>(tile, row, column, values, width); });
    });
  }
}

/// Weights of one row from its scores, `vectors` of them; a constant unrolls the loops.
template <class Real>
HWY_INLINE void SoftmaxRow(const Tile<Real>& tile, std::int64_t row, std::int64_t vectors) {
  const TagOf<Real> tag;
  constexpr std::int64_t kStep = kLanes<Real>;
  Real* weights = tile.weights + row * kTileKeys;
  // A maximum may lose NaN: exp(NaN - maximum) brings it back.
  auto most = hn::LoadU(tag, weights);
  for (std::int64_t n = 1; n < vectors; ++n) most = hn::Max(most, hn::LoadU(tag, weights + n * kStep));
  const auto limit = hn::Set(tag, tile.maximum[row] + static_cast<Real>(kLag));
  if (HWY_UNLIKELY(!hn::AllFalse(tag, hn::Gt(most, limit)))) Raise(tile, row, hn::GetLane(hn::MaxOfLanes(tag, most)));
  const auto maximum = hn::Set(tag, tile.maximum[row]);
  Real* sum = tile.sum + row * kStep;
  auto total = hn::LoadU(tag, sum);
  for (std::int64_t n = 0; n < vectors; ++n) {
    const auto weight = Exp(tag, hn::Sub(hn::LoadU(tag, weights + n * kStep), maximum));
    hn::StoreU(weight, tag, weights + n * kStep);
    total = hn::Add(total, weight);
  }
  hn::StoreU(total, tag, sum);
}

/// Scores to weights.
template <class Real>
void Softmax(const Tile<Real>& tile) {
  if (tile.keys == kTileKeys) {
    for (std::int64_t row = 0; row < tile.rows; ++row) SoftmaxRow(tile, row, kTileKeys / kLanes<Real>);
  } else {
    const std::int64_t vectors = (tile.keys + kLanes<Real> - 1) / kLanes<Real>;
    for (std::int64_t row = 0; row < tile.rows; ++row) SoftmaxRow(tile, row, vectors);
  }
}

/// Hides what lies outside of each row's interval.
template <class Real>
void HideOutside(const Tile<Real>& tile) {
  constexpr Real kHidden = -std::numeric_limits<Real>::infinity();
  const std::int64_t end = (tile.keys + kLanes<Real> - 1) / kLanes<Real> * kLanes<Real>;
  for (std::int64_t row = 0; row < tile.rows; ++row) {
    Real* scores = tile.weights + row * kTileKeys;
    std::fill(scores, scores + tile.first[row], kHidden);
    std::fill(scores + tile.last[row], scores + end, kHidden);
  }
}

}  // namespace attest::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
