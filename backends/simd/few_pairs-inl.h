// A tile for few queries in bf16, whose products are added two at a time, for one instruction set: included once for
// each by kernels.cpp. As few_rows-inl.h otherwise; outputs are read and written once for eight values.
#if defined(ATTEST_BACKENDS_SIMD_FEW_PAIRS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEST_BACKENDS_SIMD_FEW_PAIRS_INL_H_
#undef ATTEST_BACKENDS_SIMD_FEW_PAIRS_INL_H_
#else
#define ATTEST_BACKENDS_SIMD_FEW_PAIRS_INL_H_
#endif

#include "backends/simd/few_keys-inl.h"

#if ATTEST_SIMD_TAKES_PAIRS
HWY_BEFORE_NAMESPACE();
namespace attest::simd::HWY_NAMESPACE {

/// As LoadRest.
HWY_INLINE VectorOf<float> LoadRestOfHalves(const std::uint16_t* from, std::int64_t n) {
  std::uint16_t rest[kHalves] = {};
  std::copy(from, from + n, rest);
  return LoadHalves(rest);
}

template <int R>
HWY_INLINE void DotPairRows(const Tile<float>& tile) {
  const PairTile& pairs = *tile.pairs;
  std::int64_t j = 0;
  for (; j + 4 <= tile.keys; j += 4)
    DotKeys<R, 4, std::uint16_t>(tile, pairs.queries, pairs.query_stride, pairs.scale, j);
  for (; j < tile.keys; ++j) DotKeys<R, 1, std::uint16_t>(tile, pairs.queries, pairs.query_stride, pairs.scale, j);
}

/// O += P * V for R rows and K pairs of values, the tile's from j on; the last of them may be missing.
template <int R, int K>
HWY_INLINE void AddValuePairs(const Tile<float>& tile, std::int64_t j) {
  const TagOf<float> tag;
  const std::int64_t dim = tile.value_dim, whole = dim / kHalves * kHalves;
  constexpr int kAtOnce = R < 4 ? R : 4;
  const std::uint16_t* values[2 * K];
#pragma GCC unroll 8
  for (int k = 0; k < 2 * K; ++k) {
    // The weight of a missing one is 0, which only numbers survive.
    const std::int64_t key = K == 1 ? std::min(j + k, tile.keys - 1) : j + k;
    values[k] = static_cast<const std::uint16_t*>(tile.value_rows[key]);
    const auto* next = static_cast<const std::uint16_t*>(tile.value_rows[j + k + kTileKeys]);
    for (std::int64_t c = 0; c < dim; c += kHalves) FetchNext(next + c, tile.from_memory);
  }
  alignas(64) static constexpr std::uint16_t kOrder[2][32] = {
      {0, 32, 1, 33, 2,  34, 3,  35, 4,  36, 5,  37, 6,  38, 7,  39,
       8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47},
      {16, 48, 17, 49, 18, 50, 19, 51, 20, 52, 21, 53, 22, 54, 23, 55,
       24, 56, 25, 57, 26, 58, 27, 59, 28, 60, 29, 61, 30, 62, 31, 63}};
  const __m512i low_order = _mm512_load_si512(kOrder[0]), high_order = _mm512_load_si512(kOrder[1]);
  const auto add = [&](std::int64_t c, bool has_high, const auto& load) HWY_ATTR {
    VectorOf<float> low[K], high[K];
#pragma GCC unroll 4
    for (int k = 0; k < K; ++k) {
      const __m512i first = _mm512_castps_si512(load(values[2 * k] + c).raw);
      const __m512i second = _mm512_castps_si512(load(values[2 * k + 1] + c).raw);
      low[k].raw = _mm512_castsi512_ps(_mm512_permutex2var_epi16(first, low_order, second));
      high[k].raw = _mm512_castsi512_ps(_mm512_permutex2var_epi16(first, high_order, second));
    }
    for (int row = 0; row < R; row += kAtOnce) {
#pragma GCC unroll 4
      for (int r = row; r < row + kAtOnce; ++r) {
        float* out = tile.out + r * tile.out_stride + c;
        const Pair* weights = tile.pairs->weights + (r * kTileKeys + j) / 2;
        auto low_sum = hn::LoadU(tag, out);
        auto high_sum = has_high ? hn::LoadU(tag, out + kLanes<float>) : hn::Zero(tag);
#pragma GCC unroll 4
        for (int k = 0; k < K; ++k) {
          const auto weight = Operand<Pair>::Broadcast(weights[k]);
          Operand<Pair>::MulAdd(weight, low[k], low_sum);
          Operand<Pair>::MulAdd(weight, high[k], high_sum);
        }
        hn::StoreU(low_sum, tag, out);
        if (has_high) hn::StoreU(high_sum, tag, out + kLanes<float>);
      }
    }
  };
  for (std::int64_t c = 0; c < whole; c += kHalves)
    add(c, true, [](const std::uint16_t* at) HWY_ATTR { return LoadHalves(at); });
  if (whole < dim)
    add(whole, tile.out_stride - whole > kLanes<float>,
        [dim, whole](const std::uint16_t* at) HWY_ATTR { return LoadRestOfHalves(at, dim - whole); });
}

template <int R>
HWY_INLINE void AddPairRows(const Tile<float>& tile) {
  constexpr int kAtOnce = 4;
  RoundWeights(tile);
  std::int64_t j = 0;
  for (; j + 2 * kAtOnce <= tile.keys; j += 2 * kAtOnce) AddValuePairs<R, kAtOnce>(tile, j);
  for (; j < tile.keys; j += 2) AddValuePairs<R, 1>(tile, j);
}

/// step(rows), with their number as a constant.
template <class Step>
HWY_INLINE void WithFewRows(std::int64_t rows, const Step& step) {
  switch (rows) {
    case 1: return step(std::integral_constant<int, 1>());
    case 2: return step(std::integral_constant<int, 2>());
    case 4: return step(std::integral_constant<int, 4>());
    default: return step(std::integral_constant<int, kFewRows>());
  }
}

void ScoresOfFewNarrow(const Tile<float>& tile) {
  if (tile.pairs) {
    WithFewRows(tile.rows, [&tile](auto rows) HWY_ATTR { DotPairRows<rows()>(tile); });
  } else {
    WithTypes(tile, [&tile](auto rows, auto stored) HWY_ATTR {
      if constexpr (std::is_same_v<decltype(stored), float>)
        DotRows<rows(), float>(tile);
      else
        DotNarrowRows<rows(), decltype(stored)>(tile);
    });
  }
}

void AccumulateFewNarrow(const Tile<float>& tile) {
  if (!tile.pairs) return AccumulateFew(tile);
  WithFewRows(tile.rows, [&tile](auto rows) HWY_ATTR { AddPairRows<rows()>(tile); });
}

}  // namespace attest::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#endif
