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

/// Sums over the lanes of R vectors, to `to` and on, kTileKeys apart.
template <int R, class Real>
HWY_INLINE void StoreSums(const VectorOf<Real> (&sums)[R], Real* to) {
  const TagOf<Real> tag;
  if constexpr (sizeof(Real) == 4 && R % 4 == 0) {
    // Four at a time: two rounds of pairs leave one lane of each in every block of 16 bytes.
    const hn::RepartitionToWide<decltype(tag)> pairs;
    const auto pair_up = [](auto d, auto a, auto b, TagOf<Real> sum_tag) HWY_ATTR {
      const auto low = hn::InterleaveLower(d, hn::BitCast(d, a), hn::BitCast(d, b));
      const auto high = hn::InterleaveUpper(d, hn::BitCast(d, a), hn::BitCast(d, b));
      return hn::Add(hn::BitCast(sum_tag, low), hn::BitCast(sum_tag, high));
    };
#pragma GCC unroll 2
    for (int r = 0; r < R; r += 4) {
      const auto four =
          pair_up(pairs, pair_up(tag, sums[r], sums[r + 1], tag), pair_up(tag, sums[r + 2], sums[r + 3], tag), tag);
      alignas(64) Real blocks[kLanes<Real>];
      hn::Store(four, tag, blocks);
      for (int n = 0; n < 4; ++n) {
        Real sum = blocks[n];
        for (std::int64_t lane = n + 4; lane < kLanes<Real>; lane += 4) sum += blocks[lane];
        to[(r + n) * kTileKeys] = sum;
      }
    }
  } else {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) to[r * kTileKeys] = hn::GetLane(hn::SumOfLanes(tag, sums[r]));
  }
}

/// Asks for the line at `from`, which the next tile reads. What lies in memory goes to the second level: until it is
/// read the keys and values of a whole tile pass, and the first level holds no more than these.
HWY_INLINE void FetchNext(const void* from, bool from_memory) {
  if (from_memory)
    __builtin_prefetch(from, 0, 2);
  else
    __builtin_prefetch(from, 0, 3);
}

/// R rows of scores. The next tile's keys are on their way meanwhile.
template <int R, class Stored, class Real>
void DotRows(const Tile<Real>& tile) {
  const TagOf<Real> tag;
  constexpr std::int64_t kStep = kLanes<Real>;
  const std::int64_t dim = tile.key_dim, whole = dim / kStep * kStep;
  for (std::int64_t j = 0; j < tile.keys; ++j) {
    const auto* HWY_RESTRICT key = static_cast<const Stored*>(tile.key_rows[j]);
    const auto* next = static_cast<const Stored*>(tile.key_rows[j + kTileKeys]);
    VectorOf<Real> sums[R];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) sums[r] = hn::Zero(tag);
    for (std::int64_t d = 0; d < whole; d += kStep) {
      FetchNext(next + d, tile.from_memory);
      const auto numbers = LoadWide<Real>(key + d);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) sums[r] = hn::MulAdd(hn::LoadU(tag, tile.queries + r * dim + d), numbers, sums[r]);
    }
    if (whole < dim) {
      const auto numbers = LoadRest<Real>(key + whole, dim - whole);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r)
        sums[r] = hn::MulAdd(LoadRest<Real>(tile.queries + r * dim + whole, dim - whole), numbers, sums[r]);
    }
    StoreSums<R, Real>(sums, tile.weights + j);
  }
}

/// O += P * V for R rows and K values, the tile's from j on.
template <int R, int K, class Stored, class Real>
HWY_INLINE void AddValues(const Tile<Real>& tile, std::int64_t j) {
  const TagOf<Real> tag;
  constexpr std::int64_t kStep = kLanes<Real>;
  const std::int64_t dim = tile.value_dim, whole = dim / kStep * kStep;
  constexpr bool kLineToVector = sizeof(Stored) == sizeof(Real);  // else a line of memory is read in several
  const Stored* values[K];
  const Stored* next[K];
#pragma GCC unroll 8
  for (int k = 0; k < K; ++k) {
    values[k] = static_cast<const Stored*>(tile.value_rows[j + k]);
    next[k] = static_cast<const Stored*>(tile.value_rows[j + k + kTileKeys]);
    for (std::int64_t c = 0; c < dim && !kLineToVector; c += 64 / static_cast<std::int64_t>(sizeof(Stored)))
      FetchNext(next[k] + c, tile.from_memory);
  }
  const auto add = [&](std::int64_t c, const auto& load) HWY_ATTR {
    VectorOf<Real> rows[K];
#pragma GCC unroll 8
    for (int k = 0; k < K; ++k) {
      if constexpr (kLineToVector) FetchNext(next[k] + c, tile.from_memory);
      rows[k] = load(values[k] + c);
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      Real* out = tile.out + r * tile.out_stride + c;
      const Real* weights = tile.weights + r * kTileKeys + j;
      auto sum = hn::LoadU(tag, out);
#pragma GCC unroll 8
      for (int k = 0; k < K; ++k) sum = hn::MulAdd(hn::Set(tag, weights[k]), rows[k], sum);
      hn::StoreU(sum, tag, out);
    }
  };
  for (std::int64_t c = 0; c < whole; c += kStep)
    add(c, [](const Stored* from) HWY_ATTR { return LoadWide<Real>(from); });
  if (whole < dim) add(whole, [dim, whole](const Stored* from) HWY_ATTR { return LoadRest<Real>(from, dim - whole); });
}

template <int R, class Stored, class Real>
void AddRows(const Tile<Real>& tile) {
  constexpr int kAtOnce = ATTEST_SIMD_VECTORS == 4 && sizeof(Stored) < 4 ? 8 : 4;
  std::int64_t j = 0;
  for (; j + kAtOnce <= tile.keys; j += kAtOnce) AddValues<R, kAtOnce, Stored>(tile, j);
  for (; j < tile.keys; ++j) AddValues<R, 1, Stored>(tile, j);
}

/// step(rows, stored): with the constants and types that the tile has.
template <class Real, class Step>
HWY_INLINE void WithTypes(const Tile<Real>& tile, const Step& step) {
  const auto with_rows = [&](auto stored) HWY_ATTR {
    switch (tile.rows) {
      case 1: return step(std::integral_constant<int, 1>(), stored);
      case 2: return step(std::integral_constant<int, 2>(), stored);
      case 4: return step(std::integral_constant<int, 4>(), stored);
      default: return step(std::integral_constant<int, kFewRows>(), stored);
    }
  };
  if constexpr (sizeof(Real) == 4) {
    if (tile.stored == DType::bf16) return with_rows(hwy::bfloat16_t());
    if (tile.stored == DType::i8) return with_rows(std::int8_t());
#if ATTEST_SIMD_WIDENS_F16
    if (tile.stored == DType::f16) return with_rows(hwy::float16_t());
#endif
  }
  with_rows(Real());
}

template <class Real>
void ScoresOfFew(const Tile<Real>& tile) {
  WithTypes(tile, [&tile](auto rows, auto stored) HWY_ATTR { DotRows<rows(), decltype(stored)>(tile); });
}

template <class Real>
void AccumulateFew(const Tile<Real>& tile) {
  WithTypes(tile, [&tile](auto rows, auto stored) HWY_ATTR { AddRows<rows(), decltype(stored)>(tile); });
}

}  // namespace attest::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
