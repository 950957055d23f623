// A tile of attention in registers, for one instruction set: included once for each by kernels.cpp.
//
// A group of kRows query rows against a panel of kVectors vectors of keys holds all its scores in registers: their
// exponentials are taken there, too, and only weights are ever stored. The maximum that they are relative to lags
// behind (kLag), so that a tile seldom has to look at single scores.
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

/// 16 sums in 32 registers, or 12 in 16.
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64
inline constexpr int kRows = 4, kVectors = 4;
#else
inline constexpr int kRows = 6, kVectors = 2;
#endif

template <class Real>
using TagOf = hn::ScalableTag<Real>;
template <class Real>
using VectorOf = hn::Vec<TagOf<Real>>;
template <class Real>
inline constexpr std::int64_t kLanes = static_cast<std::int64_t>(hn::MaxLanes(TagOf<Real>()));
template <class Real>
inline constexpr std::int64_t kWidth = kVectors* kLanes<Real>;
/// With many registers a tile is one panel, whose scores never leave them; else several, to be worth the way.
template <class Real>
inline constexpr std::int64_t kKeys = kVectors == 4 ? kWidth<Real> : kTileKeys;
static_assert(kKeys<float> <= kTileKeys && kTileKeys % kKeys<float> == 0);

/// A register tile.
template <class Real, int N>
struct Sums {
  VectorOf<Real> at[kRows][N];
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

/// sums += A * B: kRows rows of A, a_stride apart, and `depth` rows of B with N vectors each, b_stride apart.
template <int N, class Real>
HWY_INLINE void Multiply(const Real* HWY_RESTRICT a, std::int64_t a_stride, const Real* HWY_RESTRICT b,
                         std::int64_t b_stride, std::int64_t depth, Sums<Real, N>& sums) {
  const TagOf<Real> tag;
  const auto step = [&](std::int64_t t, const Real* row) HWY_ATTR {
    VectorOf<Real> right[N];
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) {
      right[n] = hn::LoadU(tag, row + n * kLanes<Real>);
      Pin(right[n]);
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const auto left = hn::Set(tag, a[r * a_stride + t]);
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

/// Moves the maximum of a row on to that of its scores, which lie in the weights, and shrinks what was summed under the
/// old one.
template <class Real>
HWY_NOINLINE void Raise(const Tile<Real>& tile, std::int64_t row, std::int64_t keys) {
  const TagOf<Real> tag;
  const Real* scores = tile.weights + row * kTileKeys;
  Real most = tile.maximum[row];
  for (std::int64_t j = 0; j < keys; ++j) most = scores[j] > most ? scores[j] : most;
  if (!(most > tile.maximum[row])) return;
  const auto shrink = Exp(tag, hn::Set(tag, tile.maximum[row] - most));
  const auto scale = [&](Real* numbers, std::int64_t n) HWY_ATTR {
    for (std::int64_t j = 0; j < n; j += kLanes<Real>)
      hn::StoreU(hn::Mul(hn::LoadU(tag, numbers + j), shrink), tag, numbers + j);
  };
  scale(tile.out + row * tile.out_stride, tile.out_stride);
  scale(tile.sum + row * kLanes<Real>, kLanes<Real>);
  tile.maximum[row] = most;
}

/// What happens to a panel's scores.
enum class Panel { stored, weighed, banded };

template <Panel kind, class Real>
HWY_NOINLINE void ScoreGroup(const Tile<Real>& tile, std::int64_t row, std::int64_t key) {
  const TagOf<Real> tag;
  constexpr std::int64_t kStep = kLanes<Real>;
  Sums<Real, kVectors> scores;
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int n = 0; n < kVectors; ++n) scores.at[r][n] = hn::Zero(tag);
  }
  Multiply(tile.queries + row * tile.key_dim, tile.key_dim, tile.keys_packed + key * tile.key_dim, kWidth<Real>,
           tile.key_dim, scores);
  Real* weights = tile.weights + row * kTileKeys + key;
  const auto store = [&]() HWY_ATTR {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (int n = 0; n < kVectors; ++n) hn::StoreU(scores.at[r][n], tag, weights + r * kTileKeys + n * kStep);
    }
  };
  if constexpr (kind == Panel::stored) return store();

  if constexpr (kind == Panel::banded) {
    const auto hidden = hn::Set(tag, -std::numeric_limits<Real>::infinity());
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const auto first = hn::Set(tag, static_cast<Real>(tile.first[row + r] - key));
      const auto last = hn::Set(tag, static_cast<Real>(tile.last[row + r] - key));
#pragma GCC unroll 4
      for (int n = 0; n < kVectors; ++n) {
        const auto at = hn::Iota(tag, static_cast<Real>(n * kStep));
        const auto seen = hn::And(hn::Ge(at, first), hn::Lt(at, last));
        scores.at[r][n] = hn::IfThenElse(seen, scores.at[r][n], hidden);
      }
    }
  }

  // A maximum may lose NaN: exp(NaN - maximum) brings it back.
  const auto exceeds = [&](int r) HWY_ATTR {
    auto most = scores.at[r][0];
#pragma GCC unroll 4
    for (int n = 1; n < kVectors; ++n) most = hn::Max(most, scores.at[r][n]);
    return hn::Gt(most, hn::Set(tag, tile.maximum[row + r] + static_cast<Real>(kLag)));
  };
  auto some = exceeds(0);
#pragma GCC unroll 8
  for (int r = 1; r < kRows; ++r) some = hn::Or(some, exceeds(r));
  if (HWY_UNLIKELY(!hn::AllFalse(tag, some))) {
    store();
    for (int r = 0; r < kRows; ++r) Raise(tile, row + r, kWidth<Real>);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (int n = 0; n < kVectors; ++n) scores.at[r][n] = hn::LoadU(tag, weights + r * kTileKeys + n * kStep);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    const auto maximum = hn::Set(tag, tile.maximum[row + r]);
    Real* sum = tile.sum + (row + r) * kStep;
    auto total = hn::LoadU(tag, sum);
#pragma GCC unroll 4
    for (int n = 0; n < kVectors; ++n) {
      const auto weight = Exp(tag, hn::Sub(scores.at[r][n], maximum));
      hn::StoreU(weight, tag, weights + r * kTileKeys + n * kStep);
      total = hn::Add(total, weight);
    }
    hn::StoreU(total, tag, sum);
  }
}

/// Every group of rows against every panel of the tile's keys.
template <Panel kind, class Real>
void Scores(const Tile<Real>& tile) {
  for (std::int64_t key = 0; key < tile.keys; key += kWidth<Real>) {
    for (std::int64_t row = 0; row < tile.rows; row += kRows) ScoreGroup<kind>(tile, row, key);
  }
}

template <int N, class Real>
HWY_NOINLINE void AccumulateGroup(const Tile<Real>& tile, std::int64_t row, std::int64_t column, const Real* values,
                                  std::int64_t values_stride) {
  const TagOf<Real> tag;
  Real* out = tile.out + row * tile.out_stride + column;
  Sums<Real, N> sums;
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) sums.at[r][n] = hn::LoadU(tag, out + r * tile.out_stride + n * kLanes<Real>);
  }
  Multiply(tile.weights + row * kTileKeys, kTileKeys, values, values_stride, tile.keys, sums);
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) hn::StoreU(sums.at[r][n], tag, out + r * tile.out_stride + n * kLanes<Real>);
  }
}

/// O += P * V.
template <class Real>
void Accumulate(const Tile<Real>& tile) {
  for (std::int64_t column = 0; column < tile.out_stride; column += kWidth<Real>) {
    const std::int64_t width = std::min(kWidth<Real>, tile.out_stride - column);
    const Real* values = tile.values + column * tile.values_loaded + tile.value_key * width;
    for (std::int64_t row = 0; row < tile.rows; row += kRows) {
      switch (width / kLanes<Real>) {
        case 1: AccumulateGroup<1>(tile, row, column, values, width); break;
        case 2: AccumulateGroup<2>(tile, row, column, values, width); break;
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64
        case 3: AccumulateGroup<3>(tile, row, column, values, width); break;
        case 4: AccumulateGroup<4>(tile, row, column, values, width); break;
#endif
        default: break;
      }
    }
  }
}

/// Weights from scores that were stored.
template <class Real>
void Softmax(const Tile<Real>& tile) {
  const TagOf<Real> tag;
  constexpr std::int64_t kStep = kLanes<Real>;
  for (std::int64_t row = 0; row < tile.rows; ++row) {
    Real* weights = tile.weights + row * kTileKeys;
    auto most = hn::Set(tag, -std::numeric_limits<Real>::infinity());
    for (std::int64_t j = 0; j < tile.keys; j += kStep) most = hn::Max(hn::LoadU(tag, weights + j), most);
    const Real limit = tile.maximum[row] + static_cast<Real>(kLag);
    if (!hn::AllFalse(tag, hn::Gt(most, hn::Set(tag, limit)))) Raise(tile, row, tile.keys);
    const auto maximum = hn::Set(tag, tile.maximum[row]);
    Real* sum = tile.sum + row * kStep;
    auto total = hn::LoadU(tag, sum);
    for (std::int64_t j = 0; j < tile.keys; j += kStep) {
      const auto weight = Exp(tag, hn::Sub(hn::LoadU(tag, weights + j), maximum));
      hn::StoreU(weight, tag, weights + j);
      total = hn::Add(total, weight);
    }
    hn::StoreU(total, tag, sum);
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

template <Panel kind, class Real>
void Attend(const Tile<Real>& tile) {
  if constexpr (kKeys<Real> == kWidth<Real>) {
    Scores<kind>(tile);
  } else {
    Scores<Panel::stored>(tile);
    if constexpr (kind == Panel::banded) HideOutside(tile);
    Softmax(tile);
  }
  Accumulate(tile);
}

}  // namespace attest::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
