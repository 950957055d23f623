// The kernels of each instruction set, and the choice among them: this file is compiled once for each.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/simd/kernels.cpp"
#include <hwy/foreach_target.h>
// After it, for it defines the target that the rest is compiled for.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <cctype>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>

#include "backends/backend.h"
#include "backends/simd/few_keys-inl.h"
#include "backends/simd/few_pairs-inl.h"
#include "backends/simd/few_rows-inl.h"
#include "backends/simd/gradients-inl.h"
#include "backends/simd/kernels.h"
#include "backends/simd/linear-inl.h"
#include "backends/simd/mask-inl.h"
#include "backends/simd/narrow_heads-inl.h"
#include "backends/simd/tile-inl.h"
#include "backends/simd/whole_heads-inl.h"
#include "reference/base/half.h"

HWY_BEFORE_NAMESPACE();
namespace attest::simd::HWY_NAMESPACE {

/// Whole vectors, of the last of them a part.
template <class Real, class Function>
HWY_INLINE void EachVector(Real* row, std::int64_t n, const Function& function) {
  const TagOf<Real> tag;
  constexpr std::int64_t kStep = kLanes<Real>;
  std::int64_t j = 0;
  for (; j + kStep <= n; j += kStep) hn::StoreU(function(hn::LoadU(tag, row + j)), tag, row + j);
  if (j == n) return;
  StoreFirst(function(LoadFirst(row + j, n - j)), row + j, n - j);
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

template <class Stored, class Real>
HWY_INLINE std::int64_t WidenVectors(const void* from, std::int64_t n, Real factor, Real* to) {
  const TagOf<Real> tag;
  const auto* numbers = static_cast<const Stored*>(from);
  const auto by = hn::Set(tag, factor);
  std::int64_t j = 0;
  for (; j + kLanes<Real> <= n; j += kLanes<Real>) hn::StoreU(hn::Mul(LoadWide<Real>(numbers + j), by), tag, to + j);
  return j;
}

template <class Real>
void Widen(const void* from, DType type, std::int64_t n, Real factor, Real* to) {
  if (type == DType::f16 || type == DType::bf16) {
    const auto* halves = static_cast<const std::uint16_t*>(from);
    std::int64_t j = 0;
    if constexpr (sizeof(Real) == 4) {
      if (type == DType::bf16) j = WidenVectors<hwy::bfloat16_t>(from, n, factor, to);
#if ATTEST_SIMD_WIDENS_F16
      if (type == DType::f16) j = WidenVectors<hwy::float16_t>(from, n, factor, to);
#endif
    }
    for (; j < n; ++j) to[j] = factor * (type == DType::bf16 ? bf16_to_float(halves[j]) : f16_to_float(halves[j]));
  } else if (type == DType::i8) {
    const auto* codes = static_cast<const std::int8_t*>(from);
    std::int64_t j = 0;
    if constexpr (sizeof(Real) == 4) j = WidenVectors<std::int8_t>(from, n, factor, to);
    for (; j < n; ++j) to[j] = factor * static_cast<Real>(codes[j]);
  } else {
    const auto* numbers = static_cast<const Real*>(from);
    for (std::int64_t j = WidenVectors<Real>(from, n, factor, to); j < n; ++j) to[j] = factor * numbers[j];
  }
}

template <class Real>
bool PackValues(const Real* from, std::int64_t stride, std::int64_t keys, std::int64_t dim, Real* to) {
  const TagOf<Real> tag;
  const hn::RebindToUnsigned<TagOf<Real>> bits;
  constexpr std::int64_t kStep = kLanes<Real>, kRowsAhead = 8, kLine = 64 / static_cast<std::int64_t>(sizeof(Real));
  const auto exponent = hn::BitCast(bits, hn::Set(tag, std::numeric_limits<Real>::infinity()));
  auto odd = hn::Zero(bits);
  const std::int64_t columns = (dim + kStep - 1) / kStep * kStep;
  for (std::int64_t key = 0; key < keys; ++key) {
    const Real* row = from + key * stride;
    for (std::int64_t c = 0; c < dim; c += kLine) hwy::Prefetch(row + kRowsAhead * stride + c);
    for (std::int64_t column = 0; column < columns; column += kWidth<Real>) {
      const std::int64_t width = std::min(kWidth<Real>, columns - column);
      Real* panel = to + column * keys + key * width;
      for (std::int64_t c = 0; c < width; c += kStep) {
        const std::int64_t left = dim - column - c;
        const auto values = left >= kStep ? hn::LoadU(tag, row + column + c) : LoadFirst(row + column + c, left);
        hn::StoreU(values, tag, panel + c);
        odd = hn::Or(odd, hn::VecFromMask(bits, hn::Eq(hn::And(hn::BitCast(bits, values), exponent), exponent)));
      }
    }
  }
  return hn::AllTrue(bits, hn::Eq(odd, hn::Zero(bits)));
}

#if ATTEST_SIMD_TAKES_PAIRS
bool PackValuePairs(const std::uint16_t* from, std::int64_t stride, std::int64_t keys, std::int64_t dim, Pair* to) {
  const TagOf<Pair> tag;
  constexpr std::int64_t kStep = kLanes<float>, kRowsAhead = 8, kLine = 32;
  const auto exponents = hn::Set(tag, 0x7f807f80u);
  const hn::Repartition<std::uint16_t, TagOf<Pair>> halves;
  auto odd = hn::Zero(halves);
  const std::int64_t columns = (dim + kStep - 1) / kStep * kStep, pairs = pairs_of(keys);
  const auto load = [&](std::int64_t key, std::int64_t column) HWY_ATTR {
    const hn::Rebind<std::uint16_t, TagOf<Pair>> narrow;
    if (key >= keys) return hn::Zero(tag);
    const std::uint16_t* at = from + key * stride + column;
    if (column + kStep <= dim) return hn::PromoteTo(tag, hn::LoadU(narrow, at));
    std::uint16_t rest[kStep] = {};
    std::copy(at, at + (dim - column), rest);
    return hn::PromoteTo(tag, hn::LoadU(narrow, rest));
  };
  for (std::int64_t pair = 0; pair < pairs; ++pair) {
    const std::uint16_t* ahead = from + (2 * pair + kRowsAhead) * stride;
    for (std::int64_t c = 0; c < dim; c += kLine) {
      hwy::Prefetch(ahead + c);
      hwy::Prefetch(ahead + stride + c);
    }
    for (std::int64_t column = 0; column < columns; column += kWidth<float>) {
      const std::int64_t width = std::min(kWidth<float>, columns - column);
      Pair* panel = to + column * pairs + pair * width;
      for (std::int64_t c = 0; c < width; c += kStep) {
        const auto both = hn::Or(load(2 * pair, column + c), hn::ShiftLeft<16>(load(2 * pair + 1, column + c)));
        hn::StoreU(both, tag, panel + c);
        const auto found = hn::Eq(hn::BitCast(halves, hn::And(both, exponents)), hn::BitCast(halves, exponents));
        odd = hn::Or(odd, hn::VecFromMask(halves, found));
      }
    }
  }
  return hn::AllTrue(halves, hn::Eq(odd, hn::Zero(halves)));
}
#endif

template <class Real>
bool Reads(DType stored) {
  return Widens<Real>(stored) || (sizeof(Real) == 4 && stored == DType::i8);
}

template <class Real>
constexpr void (*kScoresOfFew)(const Tile<Real>&) = ScoresOfFew<Real>;
template <class Real>
constexpr void (*kAccumulateFew)(const Tile<Real>&) = AccumulateFew<Real>;
#if ATTEST_SIMD_TAKES_PAIRS
template <>
constexpr void (*kScoresOfFew<float>)(const Tile<float>&) = ScoresOfFewNarrow;
template <>
constexpr void (*kAccumulateFew<float>)(const Tile<float>&) = AccumulateFewNarrow;
#endif

// With 16 registers tiles are faster.
#if ATTEST_SIMD_VECTORS == 4
inline constexpr std::int64_t kNarrowDim = 28;
template <class Real>
constexpr void (*kAttendNarrow)(const NarrowTile<Real>&) = AttendNarrow<Real>;
#else
inline constexpr std::int64_t kNarrowDim = 0;
template <class Real>
constexpr void (*kAttendNarrow)(const NarrowTile<Real>&) = nullptr;
#endif

template <class Real>
const Kernels<Real>& KernelsHere() {
  static constexpr Kernels<Real> kernels = {.lanes = kLanes<Real>,
                                            .rows = kRows,
                                            .width = kWidth<Real>,
                                            .rows_step = std::gcd(kRows, kFewerRows),
                                            .narrow_rows = kNarrowVectors * kLanes<Real>,
                                            .narrow_dim = kNarrowDim,
                                            .pack_values = PackValues<Real>,
                                            .takes_pairs = false,
                                            .pack_value_pairs = nullptr,
                                            .scores = Scores<Real>,
                                            .reads_mask = ReadsMask<Real>,
                                            .mask = Mask<Real>,
                                            .hide = HideOutside<Real>,
                                            .softmax = Softmax<Real>,
                                            .accumulate = Accumulate<Real>,
                                            .finish_row = FinishRow<Real>,
                                            .attend_head = AttendHead<Real>,
                                            .attend_narrow = kAttendNarrow<Real>,
                                            .reads = Reads<Real>,
                                            .scores_of_few = kScoresOfFew<Real>,
                                            .accumulate_few = kAccumulateFew<Real>,
                                            .widen = Widen<Real>,
                                            .multiply_add = MultiplyAdd<Real>,
                                            .multiply_add_turned = MultiplyAddTurned<Real>,
                                            .weigh = Weigh<Real>,
                                            .step = Step<Real>,
                                            .exp_row = ExpRow<Real>,
                                            .tanh_row = TanhRow<Real>};
  return kernels;
}

const Kernels<float>& KernelsF32() { return KernelsHere<float>(); }
const Kernels<double>& KernelsF64() { return KernelsHere<double>(); }

/// The same functions, which take pairs of bf16 as well.
const Kernels<float>& KernelsOfPairs() {
#if ATTEST_SIMD_TAKES_PAIRS
  static const Kernels<float> kernels = [] {
    Kernels<float> all = KernelsF32();
    all.takes_pairs = true;
    all.pack_value_pairs = PackValuePairs;
    return all;
  }();
  return kernels;
#else
  return KernelsF32();
#endif
}

}  // namespace attest::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attest::simd {
namespace {

HWY_EXPORT(KernelsF32);
HWY_EXPORT(KernelsF64);
HWY_EXPORT(KernelsOfPairs);

std::string name_of_target(std::int64_t bit) {
  if (bit == HWY_AVX3) return "avx512";
  std::string name = hwy::TargetName(bit);
  for (char& letter : name) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return name;
}

/// Of bf16: Highway 1.0.3 doesn't ask for them.
bool has_products_of_pairs(std::int64_t bit) {
#if HWY_ARCH_X86_64
  return bit == HWY_AVX3 && __builtin_cpu_supports("avx512bf16");
#else
  static_cast<void>(bit);
  return false;
#endif
}

/// Whether they give more a second than products of f32: twice as many on a Zen 5, and half as many on an Emerald
/// Rapids, which leaves bf16 to AMX as others of Intel's do (README.md, "What was tried").
bool pairs_are_faster() {
#if HWY_ARCH_X86_64
  return !__builtin_cpu_is("intel") || __builtin_cpu_is("cooperlake");
#else
  return true;
#endif
}

}  // namespace

std::vector<Target> targets() {
  std::vector<Target> found;
  // In Highway's masks a lower bit is a better instruction set.
  for (std::int64_t rest = hwy::SupportedTargets() & HWY_TARGETS; rest != 0; rest &= rest - 1) {
    const std::int64_t bit = rest & -rest;
    found.push_back({name_of_target(bit), bit});
    if (!has_products_of_pairs(bit)) continue;
    found.insert(found.end() - (pairs_are_faster() ? 1 : 0), {name_of_target(bit) + "_bf16", bit, true});
  }
  return found;
}

Target chosen_target() {
  const std::vector<Target> all = targets();
  if (all.empty()) throw BackendUnavailable("the processor has none of the instruction sets that were compiled");
  const char* wanted = std::getenv("ATTEST_SIMD_TARGET");
  if (!wanted || !*wanted) return all.front();
  std::string names;
  for (const Target& target : all) {
    if (target.name == wanted) return target;
    names += (names.empty() ? "" : ", ") + target.name;
  }
  throw BackendUnavailable("ATTEST_SIMD_TARGET=" + std::string(wanted) + ": here are " + names);
}

std::string highway_version() {
  return std::to_string(HWY_MAJOR) + "." + std::to_string(HWY_MINOR) + "." + std::to_string(HWY_PATCH);
}

template <>
const Kernels<float>& kernels_of(const Target& target) {
  hwy::GetChosenTarget().Update(target.bit);
  return target.pairs ? HWY_DYNAMIC_DISPATCH(KernelsOfPairs)() : HWY_DYNAMIC_DISPATCH(KernelsF32)();
}

template <>
const Kernels<double>& kernels_of(const Target& target) {
  hwy::GetChosenTarget().Update(target.bit);
  return HWY_DYNAMIC_DISPATCH(KernelsF64)();
}

}  // namespace attest::simd
#endif
