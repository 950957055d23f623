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
#include <type_traits>

#include "backends/simd/exp-inl.h"
#include "backends/simd/kernels.h"
#include "backends/simd/operands-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attest::simd::HWY_NAMESPACE {

/// A register tile.
template <class Real, int R, int N>
struct Sums {
  VectorOf<Real> at[R][N];

  HWY_INLINE void Clear() {
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
      for (int n = 0; n < N; ++n) at[r][n] = hn::Zero(TagOf<Real>());
    }
  }
};

#if ATTEST_SIMD_TAKES_PAIRS
/// The weights that Accumulate reads.
HWY_INLINE void RoundWeights(const Tile<float>& tile) {
  const TagOf<float> tag;
  constexpr std::int64_t kStep = 2 * kLanes<float>;
  const std::int64_t keys = (tile.keys + kLanes<float> - 1) / kLanes<float> * kLanes<float>;
  for (std::int64_t row = 0; row < tile.rows; ++row) {
    const float* from = tile.weights + row * kTileKeys;
    for (std::int64_t key = 0; key < keys; key += kStep) {
      const auto second = key + kLanes<float> < keys ? hn::LoadU(tag, from + key + kLanes<float>) : hn::Zero(tag);
      const auto pairs = RoundToPairs(hn::LoadU(tag, from + key), second);
      hn::StoreU(hn::BitCast(TagOf<Pair>(), pairs), TagOf<Pair>(), tile.pairs->weights + (row * kTileKeys + key) / 2);
    }
  }
}
#endif

/// sums += A * B: R rows of A, a_stride apart (or columns, where it is turned), and `depth` rows of B with N vectors
/// each, b_stride apart.
template <int R, int N, bool kTurned = false, class Number, class Real = typename Operand<Number>::Real>
HWY_INLINE void Multiply(const Number* HWY_RESTRICT a, std::int64_t a_stride, const Number* HWY_RESTRICT b,
                         std::int64_t b_stride, std::int64_t depth, Sums<Real, R, N>& sums) {
  const auto step = [&](std::int64_t t, const Number* row) HWY_ATTR {
    VectorOf<Real> right[N];
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) {
      right[n] = Operand<Number>::Load(row + n * kLanes<Real>);
      Pin(right[n]);
    }
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const auto left = Operand<Number>::Broadcast(kTurned ? a[t * a_stride + r] : a[r * a_stride + t]);
#pragma GCC unroll 4
      for (int n = 0; n < N; ++n) Operand<Number>::MulAdd(left, right[n], sums.at[r][n]);
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
template <int R, int N, bool kTurned = false, class Number, class Real = typename Operand<Number>::Real>
HWY_INLINE void AddProduct(const Number* HWY_RESTRICT a, std::int64_t a_stride, const Number* HWY_RESTRICT b,
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
template <int R, int N, class Number, class Real>
HWY_NOINLINE void ScoreGroup(const Number* queries, std::int64_t query_stride, const Number* keys, std::int64_t depth,
                             Real scale, Real* to, std::int64_t to_stride) {
  const TagOf<Real> tag;
  Sums<Real, R, N> scores;
  scores.Clear();
  Multiply(queries, query_stride, keys, kWidth<Real>, depth, scores);
  const auto by = hn::Set(tag, scale);
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) {
      // Only queries of reals were scaled already.
      const auto score = std::is_same_v<Number, Real> ? scores.at[r][n] : hn::Mul(scores.at[r][n], by);
      hn::StoreU(score, tag, to + r * to_stride + n * kLanes<Real>);
    }
  }
}

/// Every group of rows against every panel of the tile's keys, as far as it sees them.
template <class Number, class Real>
HWY_INLINE void ScoresOf(const Tile<Real>& tile, const Number* queries, std::int64_t query_stride, const Number* keys,
                         std::int64_t depth, Real scale) {
  for (std::int64_t key = 0; key < tile.keys; key += kWidth<Real>) {
    EachGroup(tile.rows, [&]<int R>(std::int64_t row) {
      const std::int64_t seen = std::min(KeysOfGroup<R>(tile, row) - key, kWidth<Real>);
      if (seen <= 0) return;
      WithVectors((seen + kLanes<Real> - 1) / kLanes<Real>, [&]<int N>() {
        ScoreGroup<R, N>(queries + row * query_stride, query_stride, keys + key * depth, depth, scale,
                         tile.weights + row * kTileKeys + key, kTileKeys);
      });
    });
  }
}

template <class Real>
void Scores(const Tile<Real>& tile) {
#if ATTEST_SIMD_TAKES_PAIRS
  if constexpr (sizeof(Real) == 4) {
    if (const PairTile* pairs = tile.pairs)
      return ScoresOf(tile, pairs->queries, pairs->query_stride, pairs->keys, pairs_of(tile.key_dim), pairs->scale);
  }
#endif
  ScoresOf(tile, tile.queries, tile.key_dim, tile.keys_packed, tile.key_dim, Real{1});
}

template <int R, int N, class Number, class Real>
HWY_NOINLINE void AccumulateGroup(const Number* weights, std::int64_t weights_stride, const Number* values,
                                  std::int64_t values_stride, std::int64_t depth, Real* out, std::int64_t out_stride) {
  AddProduct<R, N>(weights, weights_stride, values, values_stride, depth, out, out_stride);
}

/// `kStep` keys to a number.
template <int kStep, class Number, class Real>
HWY_INLINE void AccumulateOf(const Tile<Real>& tile, const Number* weights, const Number* values) {
  constexpr std::int64_t kStride = kTileKeys / kStep;
  for (std::int64_t column = 0; column < tile.out_stride; column += kWidth<Real>) {
    const std::int64_t width = std::min(kWidth<Real>, tile.out_stride - column);
    const Number* panel = values + column * ((tile.values_loaded + kStep - 1) / kStep) + tile.value_key / kStep * width;
    EachGroup(tile.rows, [&]<int R>(std::int64_t row) {
      const std::int64_t keys = KeysOfGroup<R>(tile, row);
      if (keys <= 0) return;
      WithVectors(width / kLanes<Real>, [&]<int N>() {
        AccumulateGroup<R, N>(weights + row * kStride, kStride, panel, width, (keys + kStep - 1) / kStep,
                              tile.out + row * tile.out_stride + column, tile.out_stride);
      });
    });
  }
}

/// O += P * V.
template <class Real>
void Accumulate(const Tile<Real>& tile) {
#if ATTEST_SIMD_TAKES_PAIRS
  if constexpr (sizeof(Real) == 4) {
    if (const PairTile* pairs = tile.pairs) {
      RoundWeights(tile);
      return AccumulateOf<2>(tile, static_cast<const Pair*>(pairs->weights), pairs->values);
    }
  }
#endif
  AccumulateOf<1>(tile, static_cast<const Real*>(tile.weights), tile.values);
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

template <class Real>
Real FinishRow(const Real* out, const Real* parts, std::int64_t n, Real* to) {
  const TagOf<Real> tag;
  const Real sum = hn::GetLane(hn::SumOfLanes(tag, hn::LoadU(tag, parts)));
  if (sum == 0) {  // nothing is seen: O may be anything
    std::fill_n(to, n, Real{0});
    return sum;
  }
  const auto factor = hn::Set(tag, Real{1} / sum);
  std::int64_t c = 0;
  for (; c + kLanes<Real> <= n; c += kLanes<Real>) hn::StoreU(hn::Mul(hn::LoadU(tag, out + c), factor), tag, to + c);
  if (c < n) StoreFirst(hn::Mul(LoadFirst(out + c, n - c), factor), to + c, n - c);
  return sum;
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
