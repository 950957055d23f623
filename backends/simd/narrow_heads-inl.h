// Heads of few features, whose lanes are query rows: keys and values are read where they lie, one number at a time, and
// nothing is packed or added up across lanes. For one instruction set: included once for each by kernels.cpp.
#if defined(ATTEST_BACKENDS_SIMD_NARROW_HEADS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEST_BACKENDS_SIMD_NARROW_HEADS_INL_H_
#undef ATTEST_BACKENDS_SIMD_NARROW_HEADS_INL_H_
#else
#define ATTEST_BACKENDS_SIMD_NARROW_HEADS_INL_H_
#endif

#include <algorithm>
#include <limits>

#include "backends/simd/exp-inl.h"
#include "backends/simd/operands-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attest::simd::HWY_NAMESPACE {

/// Keys whose scores exist at a time.
inline constexpr int kNarrowKeys = 8;

/// N vectors of rows, from `row` on, against keys of the tile.
template <class Real, int N>
class NarrowRows {
 public:
  HWY_INLINE NarrowRows(const NarrowTile<Real>& tile, std::int64_t row)
      : tile_(tile),
        queries_(tile.queries + row * tile.key_dim),
        out_(tile.out + row * tile.value_dim),
        maximum_(tile.maximum + row),
        sum_(tile.sum + row),
        first_(tile.first + row),
        last_(tile.last + row) {}

  HWY_INLINE void Attend() {
    const auto [some_first, all_first] = std::minmax_element(first_, first_ + kGroup);
    const auto [all_last, some_last] = std::minmax_element(last_, last_ + kGroup);
    const auto end = static_cast<std::int64_t>(*some_last);
    for (auto key = static_cast<std::int64_t>(*some_first); key < end; key += kNarrowKeys) {
      VectorOf<Real> weights[kNarrowKeys][N];
      Scores(key, std::min<std::int64_t>(end - key, kNarrowKeys), weights);
      if (static_cast<Real>(key) < *all_first || static_cast<Real>(key + kNarrowKeys) > *all_last) Hide(key, weights);
      Weigh(weights);
      Accumulate(key, std::min<std::int64_t>(end - key, kNarrowKeys), weights);
    }
  }

 private:
  static constexpr std::int64_t kStep = kLanes<Real>, kGroup = N * kStep;

  /// `function` of each key and vector.
  template <class Function>
  static HWY_INLINE void Each(const Function& function) {
#pragma GCC unroll 8
    for (int k = 0; k < kNarrowKeys; ++k) {
#pragma GCC unroll 2
      for (int n = 0; n < N; ++n) function(k, n);
    }
  }

  /// Rows of a tensor from `key` on; behind `present` ones the last of them again.
  static HWY_INLINE void Rows(const Real* from, std::int64_t stride, std::int64_t key, std::int64_t present,
                              const Real* (&rows)[kNarrowKeys]) {
    for (int k = 0; k < kNarrowKeys; ++k) rows[k] = from + (key + std::min<std::int64_t>(k, present - 1)) * stride;
  }

  HWY_INLINE void Scores(std::int64_t key, std::int64_t present, VectorOf<Real> (&scores)[kNarrowKeys][N]) const {
    const TagOf<Real> tag;
    const Real* rows[kNarrowKeys];
    Rows(tile_.keys_at, tile_.key_stride, key, present, rows);
    Each([&](int k, int n) HWY_ATTR { scores[k][n] = hn::Zero(tag); });
    for (std::int64_t d = 0; d < tile_.key_dim; ++d) {
      VectorOf<Real> query[N];
#pragma GCC unroll 2
      for (int n = 0; n < N; ++n) {
        query[n] = hn::LoadU(tag, queries_ + d * kGroup + n * kStep);
        Pin(query[n]);
      }
      Each([&](int k, int n) HWY_ATTR { scores[k][n] = hn::MulAdd(hn::Set(tag, rows[k][d]), query[n], scores[k][n]); });
    }
  }

  /// What a row doesn't see.
  HWY_INLINE void Hide(std::int64_t key, VectorOf<Real> (&scores)[kNarrowKeys][N]) const {
    const TagOf<Real> tag;
    const auto hidden = hn::Set(tag, -std::numeric_limits<Real>::infinity());
    Each([&](int k, int n) HWY_ATTR {
      const auto at = hn::Set(tag, static_cast<Real>(key + k));
      const auto seen =
          hn::And(hn::Le(hn::LoadU(tag, first_ + n * kStep), at), hn::Lt(at, hn::LoadU(tag, last_ + n * kStep)));
      scores[k][n] = hn::IfThenElse(seen, scores[k][n], hidden);
    });
  }

  /// Scores to weights. The maximum lags behind, as that of tiles does.
  HWY_INLINE void Weigh(VectorOf<Real> (&scores)[kNarrowKeys][N]) {
    const TagOf<Real> tag;
#pragma GCC unroll 2
    for (int n = 0; n < N; ++n) {
      auto most = scores[0][n];
#pragma GCC unroll 8
      for (int k = 1; k < kNarrowKeys; ++k) most = hn::Max(most, scores[k][n]);
      auto maximum = hn::LoadU(tag, maximum_ + n * kStep);
      if (HWY_UNLIKELY(!hn::AllFalse(tag, hn::Gt(most, hn::Add(maximum, hn::Set(tag, static_cast<Real>(kLag)))))))
        maximum = Raise(n, hn::Max(most, maximum), maximum);
      auto total = hn::LoadU(tag, sum_ + n * kStep);
#pragma GCC unroll 8
      for (int k = 0; k < kNarrowKeys; ++k) {
        scores[k][n] = Exp(tag, hn::Sub(scores[k][n], maximum));
        total = hn::Add(total, scores[k][n]);
      }
      hn::StoreU(total, tag, sum_ + n * kStep);
    }
  }

  /// What was summed under the old maximum shrinks.
  HWY_NOINLINE VectorOf<Real> Raise(int n, VectorOf<Real> most, VectorOf<Real> maximum) {
    const TagOf<Real> tag;
    const auto shrink = Exp(tag, hn::Sub(maximum, most));
    const auto scale = [&](Real* numbers)
                           HWY_ATTR { hn::StoreU(hn::Mul(hn::LoadU(tag, numbers), shrink), tag, numbers); };
    scale(sum_ + n * kStep);
    for (std::int64_t c = 0; c < tile_.value_dim; ++c) scale(out_ + c * kGroup + n * kStep);
    hn::StoreU(most, tag, maximum_ + n * kStep);
    return most;
  }

  HWY_INLINE void Accumulate(std::int64_t key, std::int64_t present, const VectorOf<Real> (&weights)[kNarrowKeys][N]) {
    const TagOf<Real> tag;
    const Real* rows[kNarrowKeys];
    Rows(tile_.values_at, tile_.value_stride, key, present, rows);
    for (std::int64_t c = 0; c < tile_.value_dim; ++c) {
      VectorOf<Real> sums[N];
#pragma GCC unroll 2
      for (int n = 0; n < N; ++n) sums[n] = hn::LoadU(tag, out_ + c * kGroup + n * kStep);
      Each([&](int k, int n) HWY_ATTR { sums[n] = hn::MulAdd(hn::Set(tag, rows[k][c]), weights[k][n], sums[n]); });
#pragma GCC unroll 2
      for (int n = 0; n < N; ++n) hn::StoreU(sums[n], tag, out_ + c * kGroup + n * kStep);
    }
  }

  const NarrowTile<Real>& tile_;
  const Real* queries_;
  Real *out_, *maximum_, *sum_;
  const Real *first_, *last_;
};

/// Vectors of rows that share what is read of a key.
inline constexpr int kNarrowVectors = 2;

template <class Real>
void AttendNarrow(const NarrowTile<Real>& tile) {
  for (std::int64_t row = 0; row < tile.rows; row += kNarrowVectors * kLanes<Real>)
    NarrowRows<Real, kNarrowVectors>(tile, row).Attend();
}

}  // namespace attest::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
