// exp and tanh of a vector, for one instruction set: included once for each by kernels.cpp.
//
// exp(x): x = n ln 2 + r with n = round(x / ln 2) (Cody and Waite), exp(r) by a polynomial on [-ln2/2, ln2/2], and 2^n
// put together from its exponent's bits, which are all zero for the smallest n: what would be subnormal becomes 0.
#if defined(ATTEST_BACKENDS_SIMD_EXP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEST_BACKENDS_SIMD_EXP_INL_H_
#undef ATTEST_BACKENDS_SIMD_EXP_INL_H_
#else
#define ATTEST_BACKENDS_SIMD_EXP_INL_H_
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace attest::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Below this exp is 0, with the constants of each type.
inline constexpr float kLowestF32 = -127 * 0.693147180559945f;
inline constexpr double kLowestF64 = -1023 * 0.693147180559945309;

/// The maximum, and NaN where x is NaN.
template <class V>
HWY_INLINE V AtLeast(V lowest, V x) {
#if HWY_ARCH_X86
  return hn::Max(lowest, x);  // x86's maximum gives its second operand when one is NaN
#else
  return hn::IfThenElse(hn::Lt(x, lowest), lowest, x);
#endif
}

template <class Tag, class V = hn::Vec<Tag>>
HWY_INLINE V ExpF32(Tag tag, V x) {
  const hn::RebindToUnsigned<decltype(tag)> bits;
  const auto c = [tag](float number) HWY_ATTR { return hn::Set(tag, number); };
  const V bounded = AtLeast(c(kLowestF32), x);
  // Adding 1.5 * 2^23 + 127 rounds to an integer and leaves n + 127 in the low bits.
  const V magic = c(12582912.0f + 127.0f);
  const V shifted = hn::MulAdd(bounded, c(1.44269504088896341f), magic);
  const V n = hn::Sub(shifted, magic);
  V r = hn::MulAdd(n, c(-0.693359375f), bounded);
  r = hn::MulAdd(n, c(2.12194440e-4f), r);
  // exp(r) = 1 + r + r^2 (c2 + c3 r + ... + c6 r^4), within 0.2 units of roundoff over the range of r.
  const V square = hn::Mul(r, r);
  const V high = hn::MulAdd(hn::MulAdd(c(1.3926250394e-3f), r, c(8.3632329479e-3f)), r, c(4.1666552424e-2f));
  const V low = hn::MulAdd(c(1.6666576266e-1f), r, c(0.5f));
  const V tail = hn::MulAdd(hn::MulAdd(high, square, low), square, r);
  const V power = hn::BitCast(tag, hn::ShiftLeft<23>(hn::BitCast(bits, shifted)));
  return hn::MulAdd(tail, power, power);
}

template <class Tag, class V = hn::Vec<Tag>>
HWY_INLINE V ExpF64(Tag tag, V x) {
  const hn::RebindToUnsigned<decltype(tag)> bits;
  const auto c = [tag](double number) HWY_ATTR { return hn::Set(tag, number); };
  const V bounded = AtLeast(c(kLowestF64), x);
  const V magic = c(6755399441055744.0 + 1023.0);  // 1.5 * 2^52
  const V shifted = hn::MulAdd(bounded, c(1.44269504088896340736), magic);
  const V n = hn::Sub(shifted, magic);
  V r = hn::MulAdd(n, c(-6.93147180369123816490e-01), bounded);
  r = hn::MulAdd(n, c(-1.90821492927058770002e-10), r);
  // Taylor's series: its 14th term is below 0.04 units of roundoff over the range of r.
  V p = c(1.0 / 6227020800.0);
  for (double factorial : {479001600.0, 39916800.0, 3628800.0, 362880.0, 40320.0, 5040.0, 720.0, 120.0, 24.0, 6.0, 2.0})
    p = hn::MulAdd(p, r, c(1.0 / factorial));
  const V tail = hn::MulAdd(hn::Mul(p, r), r, r);
  const V power = hn::BitCast(tag, hn::ShiftLeft<52>(hn::BitCast(bits, shifted)));
  return hn::MulAdd(tail, power, power);
}

template <class Tag, class V = hn::Vec<Tag>>
HWY_INLINE V Exp(Tag tag, V x) {
  if constexpr (sizeof(hn::TFromD<Tag>) == 4)
    return ExpF32(tag, x);
  else
    return ExpF64(tag, x);
}

/// Near 0, where the relative error counts, Cephes' odd polynomial; else (1 - e) / (1 + e) with e = exp(-2|x|).
template <class Tag, class V = hn::Vec<Tag>>
HWY_INLINE V TanhF32(Tag tag, V x) {
  const auto c = [tag](float number) HWY_ATTR { return hn::Set(tag, number); };
  const V magnitude = hn::Abs(x), one = c(1.0f);
  const V e = ExpF32(tag, hn::Mul(magnitude, c(-2.0f)));
  const V far = hn::CopySign(hn::Div(hn::Sub(one, e), hn::Add(one, e)), x);
  const V z = hn::Mul(x, x);
  V p = c(-5.70498872745e-3f);
  for (float term : {2.06390887954e-2f, -5.37397155531e-2f, 1.33314422036e-1f, -3.33332819422e-1f})
    p = hn::MulAdd(p, z, c(term));
  const V near = hn::MulAdd(hn::Mul(p, z), x, x);
  return hn::IfThenElse(hn::Lt(magnitude, c(0.625f)), near, far);
}

}  // namespace attest::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
