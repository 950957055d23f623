// Scores of few queries, four keys at a time, for one instruction set: included once for each by kernels.cpp. Where
// keys come in 8 or 16 bits, adding up the lanes of each score would take longer than the products.
#if defined(ATTEST_BACKENDS_SIMD_FEW_KEYS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEST_BACKENDS_SIMD_FEW_KEYS_INL_H_
#undef ATTEST_BACKENDS_SIMD_FEW_KEYS_INL_H_
#else
#define ATTEST_BACKENDS_SIMD_FEW_KEYS_INL_H_
#endif

#include "backends/simd/few_rows-inl.h"

#if ATTEST_SIMD_TAKES_PAIRS
HWY_BEFORE_NAMESPACE();
namespace attest::simd::HWY_NAMESPACE {

inline constexpr std::int64_t kHalves = 2 * kLanes<float>;  ///< numbers of bf16 in a vector

HWY_INLINE VectorOf<float> LoadHalves(const std::uint16_t* from) {
  return hn::BitCast(TagOf<float>(), hn::LoadU(hn::ScalableTag<std::uint16_t>(), from));
}

/// How keys of a stored type are multiplied: as pairs where they are bf16 as they lie, else as f32.
template <class Stored>
struct FewKeys {
  using Number = float;  ///< of queries
  static constexpr std::int64_t kStep = kLanes<float>;
  static HWY_INLINE VectorOf<float> Load(const Stored* from) { return LoadWide<float>(from); }
};
template <>
struct FewKeys<std::uint16_t> {
  using Number = Pair;
  static constexpr std::int64_t kStep = kHalves;
  static HWY_INLINE VectorOf<float> Load(const std::uint16_t* from) { return LoadHalves(from); }
};

/// Sums over the lanes of four vectors: in each block of 16 bytes one lane of each remains.
HWY_INLINE VectorOf<float> SumsOfFour(VectorOf<float> first, VectorOf<float> second, VectorOf<float> third,
                                      VectorOf<float> fourth) {
  const TagOf<float> tag;
  const TagOf<double> wide;
  const auto low = hn::Add(hn::InterleaveLower(tag, first, second), hn::InterleaveUpper(tag, first, second));
  const auto high = hn::Add(hn::InterleaveLower(tag, third, fourth), hn::InterleaveUpper(tag, third, fourth));
  const auto a = hn::BitCast(wide, low), b = hn::BitCast(wide, high);
  return hn::Add(hn::BitCast(tag, hn::InterleaveLower(wide, a, b)), hn::BitCast(tag, hn::InterleaveUpper(wide, a, b)));
}

/// Sums over the blocks of 16 bytes of four vectors, one vector's behind the other's.
HWY_INLINE VectorOf<float> SumsOfBlocks(VectorOf<float> a, VectorOf<float> b, VectorOf<float> c, VectorOf<float> d) {
  const TagOf<float> tag;
  const auto first = hn::Add(hn::ConcatLowerLower(tag, b, a), hn::ConcatUpperUpper(tag, b, a));
  const auto second = hn::Add(hn::ConcatLowerLower(tag, d, c), hn::ConcatUpperUpper(tag, d, c));
  const VectorOf<float> even{_mm512_shuffle_f32x4(first.raw, second.raw, 0x88)};
  const VectorOf<float> odd{_mm512_shuffle_f32x4(first.raw, second.raw, 0xdd)};
  return hn::Add(even, odd);
}

/// sums += a vector of each of K keys, at `at`, times one of each of R queries.
template <int R, int K, class Stored, class Number = typename FewKeys<Stored>::Number>
HWY_INLINE void AddDots(const Number* queries, std::int64_t query_stride, const Stored* const (&keys)[K],
                        std::int64_t at, Sums<float, K, R>& sums) {
  VectorOf<float> query[R];
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) query[r] = Operand<Number>::Load(queries + r * query_stride);
#pragma GCC unroll 4
  for (int k = 0; k < K; ++k) {
    const auto key = FewKeys<Stored>::Load(keys[k] + at);
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) Operand<Number>::MulAdd(query[r], key, sums.at[k][r]);
  }
}

/// R <= 4 rows of scores, from `row` on, for K keys from j on.
template <int R, int K, class Stored, class Number = typename FewKeys<Stored>::Number>
HWY_NOINLINE void DotKeysOfRows(const Tile<float>& tile, const Number* queries, std::int64_t query_stride, float factor,
                                std::int64_t row, std::int64_t j) {
  const TagOf<float> tag;
  constexpr std::int64_t kStep = FewKeys<Stored>::kStep, kOfNumber = kStep / kLanes<float>;
  const std::int64_t dim = tile.key_dim, whole = dim / kStep * kStep;
  queries += row * query_stride;
  const Stored* keys[K];
  for (int k = 0; k < K; ++k) keys[k] = static_cast<const Stored*>(tile.key_rows[j + k]);
  for (int k = 0; k < K && row == 0; ++k) {
    const auto* next = static_cast<const Stored*>(tile.key_rows[j + k + kTileKeys]);
    for (std::int64_t d = 0; d < dim; d += 64 / static_cast<std::int64_t>(sizeof(Stored)))
      FetchNext(next + d, tile.from_memory);
  }
  Sums<float, K, R> sums;
#pragma GCC unroll 4
  for (int k = 0; k < K; ++k) {
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) sums.at[k][r] = hn::Zero(tag);
  }
  for (std::int64_t d = 0; d < whole; d += kStep) AddDots<R, K>(queries + d / kOfNumber, query_stride, keys, d, sums);
  if (whole < dim) {  // nothing beyond is read: it may not be there
    Stored rest[K][kStep] = {};
    Number query_rest[R][kLanes<float>] = {};
    const Stored* rests[K];
    for (int k = 0; k < K; ++k) {
      std::copy(keys[k] + whole, keys[k] + dim, rest[k]);
      rests[k] = rest[k];
    }
    for (int r = 0; r < R; ++r) {
      const Number* query = queries + r * query_stride;
      std::copy(query + whole / kOfNumber, query + (dim + kOfNumber - 1) / kOfNumber, query_rest[r]);
    }
    AddDots<R, K>(query_rest[0], kLanes<float>, rests, 0, sums);
  }
  float* to = tile.weights + row * kTileKeys + j;
  const auto by = hn::Set(tag, factor);
  if constexpr (K == 4) {
    const auto of_key = [&](int k) HWY_ATTR {
      return SumsOfFour(sums.at[k][0], R > 1 ? sums.at[k][R > 1 ? 1 : 0] : hn::Zero(tag),
                        R > 2 ? sums.at[k][R > 2 ? 2 : 0] : hn::Zero(tag),
                        R > 2 ? sums.at[k][R > 2 ? 3 : 0] : hn::Zero(tag));
    };
    const auto of_keys = hn::Mul(SumsOfBlocks(of_key(0), of_key(1), of_key(2), of_key(3)), by);
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512 of_rows = _mm512_permutexvar_ps(order, of_keys.raw);
    _mm_storeu_ps(to, _mm512_castps512_ps128(of_rows));
    if constexpr (R > 1) _mm_storeu_ps(to + kTileKeys, _mm512_extractf32x4_ps(of_rows, 1));
    if constexpr (R > 2) {
      _mm_storeu_ps(to + 2 * kTileKeys, _mm512_extractf32x4_ps(of_rows, 2));
      _mm_storeu_ps(to + 3 * kTileKeys, _mm512_extractf32x4_ps(of_rows, 3));
    }
  } else {
    static_assert(K == 1);
    for (int r = 0; r < R; ++r) to[r * kTileKeys] = hn::GetLane(hn::Mul(hn::SumOfLanes(tag, sums.at[0][r]), by));
  }
}

/// R rows of scores, each multiplied by a factor, for K keys from j on.
template <int R, int K, class Stored, class Number = typename FewKeys<Stored>::Number>
HWY_INLINE void DotKeys(const Tile<float>& tile, const Number* queries, std::int64_t query_stride, float factor,
                        std::int64_t j) {
  constexpr int kAtOnce = R < 4 ? R : 4;
  for (std::int64_t row = 0; row < R; row += kAtOnce)
    DotKeysOfRows<kAtOnce, K, Stored>(tile, queries, query_stride, factor, row, j);
}

/// R rows of scores from keys in 8 or 16 bits.
template <int R, class Stored>
HWY_INLINE void DotNarrowRows(const Tile<float>& tile) {
  std::int64_t j = 0;
  for (; j + 4 <= tile.keys; j += 4) DotKeys<R, 4, Stored>(tile, tile.queries, tile.key_dim, 1, j);
  for (; j < tile.keys; ++j) DotKeys<R, 1, Stored>(tile, tile.queries, tile.key_dim, 1, j);
}

}  // namespace attest::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#endif
