// A tile for few queries, as when tokens are generated, for one instruction set: included once for each by kernels.cpp.
//
// Each key is used by so few rows that packing would cost more than reading: the products take K and V row by row as
// they lie, whole rows in sequence, which is what memory likes best.
#if defined(ATTEST_BACKENDS_SIMD_FEW_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEST_BACKENDS_SIMD_FEW_ROWS_INL_H_
#undef ATTEST_BACKENDS_SIMD_FEW_ROWS_INL_H_
#else
#define ATTEST_BACKENDS_SIMD_FEW_ROWS_INL_H_
#endif

#include "backends/simd/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attest::simd::HWY_NAMESPACE {

/// The last `n` < lanes numbers of a row, zeros behind them. Nothing beyond is read: it may not be there.
template <class Real>
HWY_INLINE VectorOf<Real> LoadRest(const Real* from, std::int64_t n) {
  Real rest[kLanes<Real>] = {};
  std::copy(from, from + n, rest);
  return hn::LoadU(TagOf<Real>(), rest);
}

/// R rows of scores.
template <int R, class Real>
void DotRows(const Tile<Real>& tile) {
  const TagOf<Real> tag;
  constexpr std::int64_t kStep = kLanes<Real>;
  const std::int64_t dim = tile.key_dim, whole = dim / kStep * kStep;
  for (std::int64_t j = 0; j < tile.keys; ++j) {
    const Real* HWY_RESTRICT key = tile.key_rows + j * tile.key_stride;
    VectorOf<Real> sums[R];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) sums[r] = hn::Zero(tag);
    const auto add = [&](std::int64_t d, VectorOf<Real> numbers) HWY_ATTR {
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) sums[r] = hn::MulAdd(hn::LoadU(tag, tile.queries + r * dim + d), numbers, sums[r]);
    };
    for (std::int64_t d = 0; d < whole; d += kStep) add(d, hn::LoadU(tag, key + d));
    if (whole < dim) {
      const auto numbers = LoadRest(key + whole, dim - whole);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r)
        sums[r] = hn::MulAdd(LoadRest(tile.queries + r * dim + whole, dim - whole), numbers, sums[r]);
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) tile.weights[r * kTileKeys + j] = hn::GetLane(hn::SumOfLanes(tag, sums[r]));
  }
}

/// O += P * V for R rows and K values, the tile's from j on.
template <int R, int K, class Real>
HWY_INLINE void AddValues(const Tile<Real>& tile, std::int64_t j) {
  const TagOf<Real> tag;
  constexpr std::int64_t kStep = kLanes<Real>;
  const std::int64_t dim = tile.value_dim, whole = dim / kStep * kStep;
  const Real* HWY_RESTRICT values = tile.value_rows + j * tile.value_stride;
  const auto add = [&](std::int64_t c, const auto& load) HWY_ATTR {
    VectorOf<Real> rows[K];
#pragma GCC unroll 4
    for (int k = 0; k < K; ++k) rows[k] = load(values + k * tile.value_stride + c);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      Real* out = tile.out + r * tile.out_stride + c;
      const Real* weights = tile.weights + r * kTileKeys + j;
      auto sum = hn::LoadU(tag, out);
#pragma GCC unroll 4
      for (int k = 0; k < K; ++k) sum = hn::MulAdd(hn::Set(tag, weights[k]), rows[k], sum);
      hn::StoreU(sum, tag, out);
    }
  };
  for (std::int64_t c = 0; c < whole; c += kStep)
    add(c, [tag](const Real* from) HWY_ATTR { return hn::LoadU(tag, from); });
  if (whole < dim) add(whole, [dim, whole](const Real* from) HWY_ATTR { return LoadRest(from, dim - whole); });
}

template <int R, class Real>
void AddRows(const Tile<Real>& tile) {
  constexpr int kAtOnce = 4;
  std::int64_t j = 0;
  for (; j + kAtOnce <= tile.keys; j += kAtOnce) AddValues<R, kAtOnce>(tile, j);
  for (; j < tile.keys; ++j) AddValues<R, 1>(tile, j);
}

template <class Real>
void ScoresOfFew(const Tile<Real>& tile) {
  switch (tile.rows) {
    case 1: return DotRows<1>(tile);
    case 2: return DotRows<2>(tile);
    case 4: return DotRows<4>(tile);
    default: return DotRows<kFewRows>(tile);
  }
}

template <class Real>
void AccumulateFew(const Tile<Real>& tile) {
  switch (tile.rows) {
    case 1: return AddRows<1>(tile);
    case 2: return AddRows<2>(tile);
    case 4: return AddRows<4>(tile);
    default: return AddRows<kFewRows>(tile);
  }
}

}  // namespace attest::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
