// Linear attention in registers, for one instruction set: included once for each by kernels.cpp. Products for chunks of
// tokens, and the rules for one token.
#if defined(ATTEST_BACKENDS_SIMD_LINEAR_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEST_BACKENDS_SIMD_LINEAR_INL_H_
#undef ATTEST_BACKENDS_SIMD_LINEAR_INL_H_
#else
#define ATTEST_BACKENDS_SIMD_LINEAR_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>

#include "backends/simd/kernels.h"
#include "backends/simd/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attest::simd::HWY_NAMESPACE {

template <int N, class Real>
HWY_NOINLINE void MultiplyAddGroup(const Product<Real>& p, std::int64_t row, std::int64_t column) {
  const std::int64_t depth = p.lower_left ? std::min<std::int64_t>(p.depth, row + kRows) : p.depth;
  AddProduct<kRows, N>(p.left + row * p.left_stride, p.left_stride, p.right + column, p.right_stride, depth,
                       p.out + row * p.out_stride + column, p.out_stride);
}

template <class Real>
void MultiplyAdd(const Product<Real>& p) {
  for (std::int64_t column = 0; column < p.columns; column += kWidth<Real>) {
    const std::int64_t vectors = std::min(kWidth<Real>, p.columns - column) / kLanes<Real>;
    for (std::int64_t row = 0; row < p.rows; row += kRows) {
      if (p.lower_out && column >= row + kRows) continue;
      WithVectors(vectors, [&]<int N>() { MultiplyAddGroup<N>(p, row, column); });
    }
  }
}

/// One token, N vectors of columns. `kDecays` and `kDelta` as the rule.
template <int N, bool kDecays, bool kDelta, class Real>
HWY_NOINLINE void StepColumns(const Token<Real>& t, std::int64_t column) {
  const TagOf<Real> tag;
  constexpr std::int64_t kStep = kLanes<Real>;
  VectorOf<Real> written[N], read[N];
#pragma GCC unroll 4
  for (int n = 0; n < N; ++n) {
    written[n] = hn::LoadU(tag, t.value + column + n * kStep);
    read[n] = hn::Zero(tag);
  }
  if constexpr (kDelta) {
    for (std::int64_t d = 0; d < t.key_dim; ++d) {
      Real* row = t.state + d * t.columns + column;
      const auto key = hn::Set(tag, t.key[d]);
#pragma GCC unroll 4
      for (int n = 0; n < N; ++n) {
        auto held = hn::LoadU(tag, row + n * kStep);
        if constexpr (kDecays) {
          held = hn::Mul(held, hn::Set(tag, t.decay[d]));
          hn::StoreU(held, tag, row + n * kStep);
        }
        read[n] = hn::MulAdd(key, held, read[n]);
      }
    }
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) {
      written[n] = hn::Mul(hn::Set(tag, t.beta), hn::Sub(written[n], read[n]));
      read[n] = hn::Zero(tag);
    }
  }
  // The first query head reads what is written on its way.
  for (std::int64_t d = 0; d < t.key_dim; ++d) {
    Real* row = t.state + d * t.columns + column;
    const auto key = hn::Set(tag, t.key[d]), query = hn::Set(tag, t.queries[d]);
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) {
      auto held = hn::LoadU(tag, row + n * kStep);
      if constexpr (kDecays && !kDelta) held = hn::Mul(held, hn::Set(tag, t.decay[d]));
      held = hn::MulAdd(key, written[n], held);
      hn::StoreU(held, tag, row + n * kStep);
      read[n] = hn::MulAdd(query, held, read[n]);
    }
  }
#pragma GCC unroll 4
  for (int n = 0; n < N; ++n) hn::StoreU(read[n], tag, t.out + column + n * kStep);
  for (std::int64_t h = 1; h < t.heads; ++h) {
    const Real* queries = t.queries + h * t.query_stride;
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) read[n] = hn::Zero(tag);
    for (std::int64_t d = 0; d < t.key_dim; ++d) {
      const auto query = hn::Set(tag, queries[d]);
#pragma GCC unroll 4
      for (int n = 0; n < N; ++n)
        read[n] = hn::MulAdd(query, hn::LoadU(tag, t.state + d * t.columns + column + n * kStep), read[n]);
    }
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) hn::StoreU(read[n], tag, t.out + h * t.out_stride + column + n * kStep);
  }
}

template <class Real>
void Step(const Token<Real>& t) {
  for (std::int64_t column = 0; column < t.columns; column += kWidth<Real>) {
    WithVectors(std::min(kWidth<Real>, t.columns - column) / kLanes<Real>, [&]<int N>() {
      if (t.is_delta)
        t.decay ? StepColumns<N, true, true>(t, column) : StepColumns<N, false, true>(t, column);
      else
        t.decay ? StepColumns<N, true, false>(t, column) : StepColumns<N, false, false>(t, column);
    });
  }
}

}  // namespace attest::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
