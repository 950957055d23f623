// A mask on the scores of a tile, for one instruction set: included once for each by kernels.cpp.
#if defined(ATTEST_BACKENDS_SIMD_MASK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEST_BACKENDS_SIMD_MASK_INL_H_
#undef ATTEST_BACKENDS_SIMD_MASK_INL_H_
#else
#define ATTEST_BACKENDS_SIMD_MASK_INL_H_
#endif

#include <limits>

#include "backends/simd/operands-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attest::simd::HWY_NAMESPACE {

/// Hidden keys are chosen before the sum: their scores may be NaN, which must not survive it.
template <bool kAdditive, class Real>
HWY_INLINE VectorOf<Real> Masked(VectorOf<Real> score, VectorOf<Real> mask) {
  const TagOf<Real> tag;
  const auto hidden = hn::Set(tag, -std::numeric_limits<Real>::infinity());
  if constexpr (kAdditive) return hn::Add(hn::IfThenZeroElse(hn::Eq(mask, hidden), score), mask);
  return hn::IfThenElse(hn::Eq(mask, hn::Zero(tag)), hidden, score);
}

template <bool kAdditive, class Stored, class Real>
HWY_INLINE void MaskRows(const Tile<Real>& tile) {
  const TagOf<Real> tag;
  constexpr std::int64_t kStep = kLanes<Real>;
  for (std::int64_t row = 0; row < tile.rows; ++row) {
    const Stored* mask = static_cast<const Stored*>(tile.mask_rows[row]) + tile.mask_key;
    Real* scores = tile.weights + row * kTileKeys;
    std::int64_t j = 0;
    for (; j + kStep <= tile.keys; j += kStep) {
      const auto score = Masked<kAdditive, Real>(hn::LoadU(tag, scores + j), LoadWide<Real>(mask + j));
      hn::StoreU(score, tag, scores + j);
    }
    if (j == tile.keys) continue;
    const auto rest = LoadRest<Real>(mask + j, tile.keys - j);
    hn::StoreU(Masked<kAdditive, Real>(hn::LoadU(tag, scores + j), rest), tag, scores + j);
  }
}

template <class Real>
bool ReadsMask(DType stored) {
  return Widens<Real>(stored) || (sizeof(Real) == 4 && stored == DType::boolean);
}

template <class Real>
void Mask(const Tile<Real>& tile) {
  if constexpr (sizeof(Real) == 4) {
    if (tile.mask_type == DType::boolean) return MaskRows<false, std::int8_t>(tile);
    if (tile.mask_type == DType::bf16) return MaskRows<true, hwy::bfloat16_t>(tile);
#if ATTEST_SIMD_WIDENS_F16
    if (tile.mask_type == DType::f16) return MaskRows<true, hwy::float16_t>(tile);
#endif
  }
  MaskRows<true, Real>(tile);
}

}  // namespace attest::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
