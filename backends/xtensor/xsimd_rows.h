// Rows of numbers in xsimd's batches: the softmax's steps, and the vectors of register tiles.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <xsimd/xsimd.hpp>

namespace attest {

/// Largest element. NaN may be lost; exp(NaN - m) brings it back.
template <class Real>
Real row_max(const Real* row, std::size_t n) {
  using Batch = xsimd::batch<Real>;
  constexpr std::size_t kLanes = Batch::size;
  Real max = -std::numeric_limits<Real>::infinity();
  std::size_t j = 0;
  if (n >= 2 * kLanes) {
    Batch first(max), second(max);
    for (; j + 2 * kLanes <= n; j += 2 * kLanes) {
      first = xsimd::max(Batch::load_unaligned(row + j), first);
      second = xsimd::max(Batch::load_unaligned(row + j + kLanes), second);
    }
    alignas(64) Real lanes[kLanes];
    xsimd::max(first, second).store_aligned(lanes);
    for (Real lane : lanes) max = std::max(max, lane);
  }
  for (; j < n; ++j) max = std::max(max, row[j]);
  return max;
}

/// exp for x <= 0: exactly 0 where the result would be subnormal, NaN for NaN. xsimd's own exp serves every argument
/// and costs half as much again. Here x = n ln 2 + r (Cody and Waite), exp(r) is a polynomial within 0.2 units of
/// roundoff, and 2^n is its exponent's bits, all zero for the smallest n.
inline xsimd::batch<float> exp_weights(const xsimd::batch<float>& x) {
  using Batch = xsimd::batch<float>;
  constexpr float kLowest = -127 * 0.693147180559945f, kMagic = 12582912.0f + 127.0f;
  const Batch bounded = xsimd::max(Batch(kLowest), x);  // the operand that stands last wins against NaN
  const Batch shifted = xsimd::fma(bounded, Batch(1.44269504088896341f), Batch(kMagic));
  const Batch n = shifted - Batch(kMagic);
  Batch r = xsimd::fma(n, Batch(-0.693359375f), bounded);
  r = xsimd::fma(n, Batch(2.12194440e-4f), r);
  Batch p(1.3926250394e-3f);
  for (float c : {8.3632329479e-3f, 4.1666552424e-2f, 1.6666576266e-1f, 0.5f}) p = xsimd::fma(p, r, Batch(c));
  const Batch tail = xsimd::fma(p, r * r, r);
  const auto power = xsimd::bitwise_cast<Batch>(xsimd::bitwise_cast<xsimd::as_integer_t<Batch>>(shifted) << 23);
  return xsimd::fma(tail, power, power);
}

/// xsimd turns its argument into an integer, which is undefined for -inf.
inline xsimd::batch<double> exp_weights(const xsimd::batch<double>& x) {
  using Batch = xsimd::batch<double>;
  constexpr double kLowest = -708.39641853226411;  // below it the result would be subnormal
  return xsimd::select(x <= Batch(kLowest), Batch(0.0), xsimd::exp(xsimd::max(Batch(kLowest), x)));
}

/// row becomes exp(row - shift), with 0 for -inf and NaN for NaN; the sum is returned.
template <class Real>
Real exp_row(Real* row, std::size_t n, Real shift) {
  using Batch = xsimd::batch<Real>;
  constexpr std::size_t kLanes = Batch::size;
  const Batch subtract(shift);
  Batch sums(Real{0}), more(Real{0});
  std::size_t j = 0;
  for (; j + 2 * kLanes <= n; j += 2 * kLanes) {
    const Batch a = exp_weights(Batch::load_unaligned(row + j) - subtract);
    const Batch b = exp_weights(Batch::load_unaligned(row + j + kLanes) - subtract);
    a.store_unaligned(row + j);
    b.store_unaligned(row + j + kLanes);
    sums += a;
    more += b;
  }
  Real sum = xsimd::hadd(sums + more);
  for (; j < n; ++j) {
    row[j] = std::exp(row[j] - shift);
    sum += row[j];
  }
  return sum;
}

template <class Real>
void tanh_in_place(Real* row, std::size_t n) {
  using Batch = xsimd::batch<Real>;
  std::size_t j = 0;
  for (; j + Batch::size <= n; j += Batch::size) xsimd::tanh(Batch::load_unaligned(row + j)).store_unaligned(row + j);
  for (; j < n; ++j) row[j] = std::tanh(row[j]);
}

/// xsimd's batches, for register tiles and gradients in them.
template <class T>
struct XsimdSimd {
  using Real = T;
  using Vector = xsimd::batch<T>;
  static constexpr int kLanes = Vector::size;
  static constexpr int kRegisters = sizeof(Vector) == 64 ? 32 : 16;
  static Vector load(const T* from) { return Vector::load_unaligned(from); }
  static Vector set(T value) { return Vector(value); }
  static Vector multiply_add(const Vector& a, const Vector& b, const Vector& c) { return xsimd::fma(a, b, c); }
  static void store(T* to, const Vector& vector) { vector.store_unaligned(to); }

  /// As fused gradients ask for it.
  static void weigh(T* scores, T* products, std::int64_t n, T lse, T shift) {
    const Vector subtract(lse), add(shift), zero(T{0}), nothing(-std::numeric_limits<T>::infinity());
    for (std::int64_t j = 0; j < n; j += kLanes) {
      const Vector score = load(scores + j);
      const auto hidden = score == nothing;
      const Vector weight = xsimd::select(hidden, zero, exp_weights(score - subtract));
      store(scores + j, weight);
      store(products + j, xsimd::select(hidden, zero, weight * (load(products + j) + add)));
    }
  }
  static void tanh_row(T* row, std::int64_t n) { tanh_in_place(row, static_cast<std::size_t>(n)); }
};

}  // namespace attest
