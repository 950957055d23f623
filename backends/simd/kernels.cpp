// The kernels of each instruction set, and the choice among them: this file is compiled once for each.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/simd/kernels.cpp"
#include <hwy/foreach_target.h>
// After it, for it defines the target that the rest is compiled for.
#include <hwy/highway.h>

#include <cctype>
#include <cmath>

#include "backends/simd/few_rows-inl.h"
#include "backends/simd/kernels.h"
#include "backends/simd/linear-inl.h"
#include "backends/simd/tile-inl.h"
#include "reference/half.h"

HWY_BEFORE_NAMESPACE();
namespace attest::simd::HWY_NAMESPACE {

/// Whole vectors, the last of them through a copy.
template <class Real, class Function>
HWY_INLINE void EachVector(Real* row, std::int64_t n, const Function& function) {
  const TagOf<Real> tag;
  constexpr std::int64_t kStep = kLanes<Real>;
  std::int64_t j = 0;
  for (; j + kStep <= n; j += kStep) hn::StoreU(function(hn::LoadU(tag, row + j)), tag, row + j);
  if (j == n) return;
  Real rest[kStep] = {};
  std::copy(row + j, row + n, rest);
  hn::StoreU(function(hn::LoadU(tag, rest)), tag, rest);
  std::copy(rest, rest + (n - j), row + j);
}

template <class Real>
void ExpRow(Real* row, std::int64_t n) {
  const TagOf<Real> tag;
  EachVector(row, n, [tag](VectorOf<Real> x) HWY_ATTR { return Exp(tag, x); });
}

template <class Real>
void TanhRow(Real* row, std::int64_t n) {
  if constexpr (sizeof(Real) == 8) {
    for (std::int64_t j = 0; j < n; ++j) row[j] = std::tanh(row[j]);
  } else {
    const TagOf<Real> tag;
    EachVector(row, n, [tag](VectorOf<Real> x) HWY_ATTR { return TanhF32(tag, x); });
  }
}

template <class Half>
HWY_INLINE std::int64_t WidenVectors(const std::uint16_t* from, std::int64_t n, float* to) {
  const auto* halves = reinterpret_cast<const Half*>(from);
  std::int64_t j = 0;
  for (; j + kLanes<float> <= n; j += kLanes<float>) hn::StoreU(LoadHalf<float>(halves + j), TagOf<float>(), to + j);
  return j;
}

template <class Real>
void Widen(const void* from, DType type, std::int64_t n, Real* to) {
  if (type == DType::f16 || type == DType::bf16) {
    const auto* halves = static_cast<const std::uint16_t*>(from);
    std::int64_t j = 0;
    if constexpr (sizeof(Real) == 4) {
      if (type == DType::bf16) j = WidenVectors<hwy::bfloat16_t>(halves, n, to);
#if ATTEST_SIMD_WIDENS_F16
      if (type == DType::f16) j = WidenVectors<hwy::float16_t>(halves, n, to);
#endif
    }
    for (; j < n; ++j) to[j] = type == DType::bf16 ? bf16_to_float(halves[j]) : f16_to_float(halves[j]);
  } else {
    std::copy_n(static_cast<const Real*>(from), n, to);
  }
}

template <class Real>
bool Reads(DType stored) {
  if (sizeof(Real) == 8) return stored == DType::f64;
  return stored == DType::f32 || stored == DType::bf16 || (stored == DType::f16 && ATTEST_SIMD_WIDENS_F16);
}

template <class Real>
const Kernels<Real>& KernelsHere() {
  static constexpr Kernels<Real> kernels = {.lanes = kLanes<Real>,
                                            .rows = kRows,
                                            .width = kWidth<Real>,
                                            .scores = Scores<Real>,
                                            .hide = HideOutside<Real>,
                                            .softmax = Softmax<Real>,
                                            .accumulate = Accumulate<Real>,
                                            .reads = Reads<Real>,
                                            .scores_of_few = ScoresOfFew<Real>,
                                            .accumulate_few = AccumulateFew<Real>,
                                            .widen = Widen<Real>,
                                            .multiply_add = MultiplyAdd<Real>,
                                            .step = Step<Real>,
                                            .exp_row = ExpRow<Real>,
                                            .tanh_row = TanhRow<Real>};
  return kernels;
}

const Kernels<float>& KernelsF32() { return KernelsHere<float>(); }
const Kernels<double>& KernelsF64() { return KernelsHere<double>(); }

}  // namespace attest::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attest::simd {
namespace {

HWY_EXPORT(KernelsF32);
HWY_EXPORT(KernelsF64);

std::string name_of_target(std::int64_t bit) {
  if (bit == HWY_AVX3) return "avx512";
  std::string name = hwy::TargetName(bit);
  for (char& letter : name) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return name;
}

}  // namespace

std::vector<Target> targets() {
  std::vector<Target> found;
  // In Highway's masks a lower bit is a better instruction set.
  for (std::int64_t rest = hwy::SupportedTargets() & HWY_TARGETS; rest != 0; rest &= rest - 1) {
    found.push_back({name_of_target(rest & -rest), rest & -rest});
  }
  return found;
}

std::string highway_version() {
  return std::to_string(HWY_MAJOR) + "." + std::to_string(HWY_MINOR) + "." + std::to_string(HWY_PATCH);
}

template <>
const Kernels<float>& kernels_of(const Target& target) {
  hwy::GetChosenTarget().Update(target.bit);
  return HWY_DYNAMIC_DISPATCH(KernelsF32)();
}

template <>
const Kernels<double>& kernels_of(const Target& target) {
  hwy::GetChosenTarget().Update(target.bit);
  return HWY_DYNAMIC_DISPATCH(KernelsF64)();
}

}  // namespace attest::simd
#endif
