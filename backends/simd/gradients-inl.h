// Steps of gradients in registers, for one instruction set: included once for each by kernels.cpp.
#if defined(ATTEST_BACKENDS_SIMD_GRADIENTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEST_BACKENDS_SIMD_GRADIENTS_INL_H_
#undef ATTEST_BACKENDS_SIMD_GRADIENTS_INL_H_
#else
#define ATTEST_BACKENDS_SIMD_GRADIENTS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <limits>

#include "backends/simd/exp-inl.h"
#include "backends/simd/kernels.h"
#include "backends/simd/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attest::simd::HWY_NAMESPACE {

template <int R, int N, class Real>
HWY_NOINLINE void MultiplyAddTurnedGroup(const Product<Real>& p, std::int64_t row, std::int64_t column) {
  AddProduct<R, N, true>(p.left + row, p.left_stride, p.right + column, p.right_stride, p.depth,
                         p.out + row * p.out_stride + column, p.out_stride);
}

template <class Real>
void MultiplyAddTurned(const Product<Real>& p) {
  for (std::int64_t column = 0; column < p.columns; column += kWidth<Real>) {
    const std::int64_t vectors = std::min(kWidth<Real>, p.columns - column) / kLanes<Real>;
    EachGroup(p.rows, [&]<int R>(std::int64_t row) {
      WithVectors(vectors, [&]<int N>() { MultiplyAddTurnedGroup<R, N>(p, row, column); });
    });
  }
}

template <class Real>
void Weigh(Real* HWY_RESTRICT scores, Real* HWY_RESTRICT products, std::int64_t n, Real lse, Real shift) {
  const TagOf<Real> tag;
  const auto subtract = hn::Set(tag, lse), add = hn::Set(tag, shift);
  const auto nothing = hn::Set(tag, -std::numeric_limits<Real>::infinity());
  for (std::int64_t j = 0; j < n; j += kLanes<Real>) {
    const auto score = hn::LoadU(tag, scores + j);
    const auto hidden = hn::Eq(score, nothing);
    const auto weight = hn::IfThenZeroElse(hidden, Exp(tag, hn::Sub(score, subtract)));
    const auto gradient = hn::Mul(weight, hn::Add(hn::LoadU(tag, products + j), add));
    hn::StoreU(weight, tag, scores + j);
    hn::StoreU(hn::IfThenZeroElse(hidden, gradient), tag, products + j);
  }
}

}  // namespace attest::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
