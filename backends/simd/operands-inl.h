// Vectors, and what products take from memory: numbers, or pairs of bf16. For one instruction set: included once for
// each by kernels.cpp.
#if defined(ATTEST_BACKENDS_SIMD_OPERANDS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEST_BACKENDS_SIMD_OPERANDS_INL_H_
#undef ATTEST_BACKENDS_SIMD_OPERANDS_INL_H_
#else
#define ATTEST_BACKENDS_SIMD_OPERANDS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <type_traits>

#include "backends/simd/kernels.h"

HWY_BEFORE_NAMESPACE();
namespace attest::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// 16 sums in 32 registers, or 12 in 16. Rows that are no multiple of 6 come in some groups of 4, not with padding:
// 8 sums still keep both units for multiply-adds busy.
#undef ATTEST_SIMD_VECTORS
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64
#define ATTEST_SIMD_VECTORS 4
inline constexpr int kRows = 4, kVectors = 4;
#else
#define ATTEST_SIMD_VECTORS 2
inline constexpr int kRows = 6, kVectors = 2;
#endif
inline constexpr int kFewerRows = static_cast<int>(kLeastRows);

// Whether the processor may have products of bf16: functions for them are compiled, and called if it has.
#undef ATTEST_SIMD_TAKES_PAIRS
#if HWY_TARGET == HWY_AVX3 && HWY_ARCH_X86_64
#define ATTEST_SIMD_TAKES_PAIRS 1
#else
#define ATTEST_SIMD_TAKES_PAIRS 0
#endif

// Without instructions for it Highway takes infinities and NaN in f16 for numbers.
#undef ATTEST_SIMD_WIDENS_F16
#if HWY_TARGET <= HWY_AVX2 || HWY_ARCH_ARM_A64
#define ATTEST_SIMD_WIDENS_F16 1
#else
#define ATTEST_SIMD_WIDENS_F16 0
#endif

/// Whether LoadWide makes Real of this floating-point type.
template <class Real>
bool Widens(DType stored) {
  if (sizeof(Real) == 8) return stored == DType::f64;
  return stored == DType::f32 || stored == DType::bf16 || (stored == DType::f16 && ATTEST_SIMD_WIDENS_F16);
}

template <class Real>
using TagOf = hn::ScalableTag<Real>;
template <class Real>
using VectorOf = hn::Vec<TagOf<Real>>;
template <class Real>
inline constexpr std::int64_t kLanes = static_cast<std::int64_t>(hn::MaxLanes(TagOf<Real>()));
template <class Real>
inline constexpr std::int64_t kWidth = kVectors* kLanes<Real>;

// Whether vectors can be loaded and stored in part, without a fault for the other lanes.
#undef ATTEST_SIMD_MASKS_MEMORY
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
#define ATTEST_SIMD_MASKS_MEMORY 1
#else
#define ATTEST_SIMD_MASKS_MEMORY 0
#endif

/// The first `n` < lanes numbers, zeros behind them. Nothing beyond is read: it may not be there.
template <class Real>
HWY_INLINE VectorOf<Real> LoadFirst(const Real* from, std::int64_t n) {
  const TagOf<Real> tag;
#if ATTEST_SIMD_MASKS_MEMORY
  return hn::MaskedLoad(hn::FirstN(tag, static_cast<std::size_t>(n)), tag, from);
#else
  Real numbers[kLanes<Real>] = {};
  std::copy(from, from + n, numbers);
  return hn::LoadU(tag, numbers);
#endif
}

/// Numbers of any type that is read, side by side, as a vector of Real.
template <class Real>
HWY_INLINE VectorOf<Real> LoadWide(const Real* from) {
  return hn::LoadU(TagOf<Real>(), from);
}
template <class Real, class Half>
HWY_INLINE VectorOf<float> LoadHalf(const Half* from) {
  const hn::Rebind<Half, TagOf<float>> narrow;
  const hn::Rebind<std::uint16_t, TagOf<float>> bits;
  const auto* words = reinterpret_cast<const std::uint16_t*>(from);
  return hn::PromoteTo(TagOf<float>(), hn::BitCast(narrow, hn::LoadU(bits, words)));
}
template <class Real>
HWY_INLINE VectorOf<float> LoadWide(const hwy::bfloat16_t* from) {
  return LoadHalf<Real>(from);
}
template <class Real>
HWY_INLINE VectorOf<float> LoadWide(const hwy::float16_t* from) {
  return LoadHalf<Real>(from);
}
template <class Real>
HWY_INLINE VectorOf<float> LoadWide(const std::int8_t* from) {
  const hn::Rebind<std::int8_t, TagOf<float>> codes;
  const hn::RebindToSigned<TagOf<float>> wide;
  return hn::ConvertTo(TagOf<float>(), hn::PromoteTo(wide, hn::LoadU(codes, from)));
}

/// The last `n` < lanes numbers of a row, as LoadFirst.
template <class Real, class Stored>
HWY_INLINE VectorOf<Real> LoadRest(const Stored* from, std::int64_t n) {
  if constexpr (std::is_same_v<Stored, Real>) {
    return LoadFirst(from, n);
  } else {
    Stored rest[kLanes<Real>] = {};
    std::copy(from, from + n, rest);
    return LoadWide<Real>(rest);
  }
}

/// To the first `n` < lanes numbers; nothing beyond is written.
template <class Real>
HWY_INLINE void StoreFirst(VectorOf<Real> vector, Real* to, std::int64_t n) {
  const TagOf<Real> tag;
#if ATTEST_SIMD_MASKS_MEMORY
  hn::BlendedStore(vector, hn::FirstN(tag, static_cast<std::size_t>(n)), tag, to);
#else
  Real numbers[kLanes<Real>];
  hn::StoreU(vector, tag, numbers);
  std::copy(numbers, numbers + n, to);
#endif
}

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

/// How products take numbers.
template <class Number>
struct Operand {
  using Real = Number;
  static HWY_INLINE VectorOf<Real> Load(const Real* from) { return hn::LoadU(TagOf<Real>(), from); }
  static HWY_INLINE VectorOf<Real> Broadcast(Real number) { return hn::Set(TagOf<Real>(), number); }
  static HWY_INLINE void MulAdd(VectorOf<Real> a, VectorOf<Real> b, VectorOf<Real>& sum) {
    sum = hn::MulAdd(a, b, sum);
  }
};

#if ATTEST_SIMD_TAKES_PAIRS
// Highway 1.0.3 has no such instructions, and functions for a processor that has them could inline nothing that is
// written for this target: hence assembler. Subnormals become 0 in both.
template <>
struct Operand<Pair> {
  using Real = float;
  static HWY_INLINE VectorOf<float> Load(const Pair* from) {
    return hn::BitCast(TagOf<float>(), hn::LoadU(TagOf<Pair>(), from));
  }
  static HWY_INLINE VectorOf<float> Broadcast(Pair pair) {
    return hn::BitCast(TagOf<float>(), hn::Set(TagOf<Pair>(), pair));
  }
  static HWY_INLINE void MulAdd(VectorOf<float> a, VectorOf<float> b, VectorOf<float>& sum) {
    asm("vdpbf16ps %2, %1, %0" : "+v"(sum.raw) : "v"(a.raw), "v"(b.raw));
  }
};

/// Numbers to bf16, to nearest.
HWY_INLINE VectorOf<float> RoundToPairs(VectorOf<float> first, VectorOf<float> second) {
  VectorOf<float> pairs;
  asm("vcvtne2ps2bf16 %1, %2, %0" : "=v"(pairs.raw) : "v"(first.raw), "v"(second.raw));
  return pairs;
}
#endif

}  // namespace attest::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
