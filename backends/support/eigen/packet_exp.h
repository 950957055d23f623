// exp(s - m) along a row of scores, for softmax weights: arguments at or below 0, exactly 0 far below, NaN stays NaN.
//
// Eigen's own pexp clamps -inf to about 1e-39 and spends half its time on scaling by 2^n in full generality.
// Here x = n ln 2 + r with n = round(x / ln 2) (Cody and Waite), exp(r) by a polynomial of degree 6 on
// [-ln2/2, ln2/2], and 2^n is put together from its exponent's bits, which are all zero for the smallest n.
#pragma once

#include <Eigen/Core>
#include <cmath>
#include <cstdint>
#include <limits>

namespace attest {

/// Largest error of either type over the arguments that do not give 0, in ulps; tests/unit/eigen_exp_test.cpp measures
/// it.
inline constexpr double kPacketExpUlps = 2;

namespace packet_exp {

/// Below this the result would be subnormal: 0 is given.
inline constexpr double kLowestF64 = -708.39641853226411;
inline constexpr float kLowestF32 = -127 * 0.693147180559945f;

template <class Packet>
Packet exp_f32(const Packet& x) {
  using namespace Eigen::internal;
  // The operand that stands first wins against NaN in pmax; NaN must come through.
  const Packet bounded = pmax(x, pset1<Packet>(kLowestF32));
  // Adding 1.5 * 2^23 + 127 rounds to an integer and leaves n + 127 in the low bits.
  constexpr float kMagic = 12582912.0f + 127.0f;
  const Packet shifted = pmadd(bounded, pset1<Packet>(1.44269504088896341f), pset1<Packet>(kMagic));
  const Packet n = psub(shifted, pset1<Packet>(kMagic));
  Packet r = pmadd(n, pset1<Packet>(-0.693359375f), bounded);
  r = pmadd(n, pset1<Packet>(2.12194440e-4f), r);
  // exp(r) = 1 + r + r^2 (c2 + c3 r + ... + c6 r^4), within 0.2 units of roundoff over the range of r.
  const auto c = [](float coefficient) { return pset1<Packet>(coefficient); };
  const Packet square = pmul(r, r);
  const Packet high = pmadd(pmadd(c(1.3926250394e-3f), r, c(8.3632329479e-3f)), r, c(4.1666552424e-2f));
  const Packet low = pmadd(c(1.6666576266e-1f), r, c(0.5f));
  const Packet tail = pmadd(pmadd(high, square, low), square, r);
  using Integers = typename unpacket_traits<Packet>::integer_packet;
  const Packet power = preinterpret<Packet>(plogical_shift_left<23>(preinterpret<Integers>(shifted)));
  return pmadd(tail, power, power);
}

template <class Packet>
Packet exp_f64(const Packet& x) {
  using namespace Eigen::internal;
  return pandnot(pexp(x), pcmp_le(x, pset1<Packet>(kLowestF64)));
}

template <class Packet>
Packet exp_packet(const Packet& x) {
  if constexpr (sizeof(typename Eigen::internal::unpacket_traits<Packet>::type) == 4)
    return exp_f32(x);
  else
    return exp_f64(x);
}

}  // namespace packet_exp

/// tanh in place: Cephes' odd polynomial near 0, where the relative error counts, else (1 - e) / (1 + e) with
/// e = exp(-2|x|). Eigen's own gives up relative accuracy near 0.
inline constexpr double kPacketTanhUlps = 3;

template <class Packet>
Packet tanh_f32(const Packet& x) {
  using namespace Eigen::internal;
  const Packet magnitude = pabs(x), one = pset1<Packet>(1.0f);
  const Packet e = packet_exp::exp_f32(pmul(magnitude, pset1<Packet>(-2.0f)));
  const Packet far = por(pdiv(psub(one, e), padd(one, e)), pand(x, pset1<Packet>(-0.0f)));
  const Packet z = pmul(x, x);
  Packet p = pset1<Packet>(-5.70498872745e-3f);
  for (float c : {2.06390887954e-2f, -5.37397155531e-2f, 1.33314422036e-1f, -3.33332819422e-1f}) {
    p = pmadd(p, z, pset1<Packet>(c));
  }
  const Packet near = pmadd(pmul(p, z), x, x);
  return pselect(pcmp_lt(magnitude, pset1<Packet>(0.625f)), near, far);
}

template <class Real>
void tanh_in_place(Real* row, std::int64_t n) {
  using namespace Eigen::internal;
  using Packet = typename packet_traits<Real>::type;
  constexpr std::int64_t kLanes = packet_traits<Real>::size;
  std::int64_t j = 0;
  if constexpr (sizeof(Real) == 4) {
    for (; j + kLanes <= n; j += kLanes) pstoreu(row + j, tanh_f32(ploadu<Packet>(row + j)));
  }
  for (; j < n; ++j) row[j] = std::tanh(row[j]);
}

/// Largest of n elements, n whole packets; in each lane its own.
template <class Real>
typename Eigen::internal::packet_traits<Real>::type max_of_row(const Real* row, std::int64_t n) {
  using namespace Eigen::internal;
  using Packet = typename packet_traits<Real>::type;
  constexpr std::int64_t kLanes = packet_traits<Real>::size;
  Packet first = pset1<Packet>(-std::numeric_limits<Real>::infinity()), second = first;
  std::int64_t j = 0;
  // A maximum may lose NaN: exp(NaN - m) brings it back.
  for (; j + 2 * kLanes <= n; j += 2 * kLanes) {
    first = pmax(first, pload<Packet>(row + j));
    second = pmax(second, pload<Packet>(row + j + kLanes));
  }
  if (j < n) first = pmax(first, pload<Packet>(row + j));
  return pmax(first, second);
}

/// row[j] becomes exp(row[j] - shift) for n elements, n whole packets; their sum is added to `sum`, lane by lane.
template <class Real>
void exp_row(Real* row, std::int64_t n, Real shift, typename Eigen::internal::packet_traits<Real>::type& sum) {
  using namespace Eigen::internal;
  using Packet = typename packet_traits<Real>::type;
  constexpr std::int64_t kLanes = packet_traits<Real>::size;
  const Packet subtract = pset1<Packet>(shift);
  Packet first = pset1<Packet>(Real{0}), second = first;
  std::int64_t j = 0;
  for (; j + 2 * kLanes <= n; j += 2 * kLanes) {
    const Packet a = packet_exp::exp_packet(psub(pload<Packet>(row + j), subtract));
    const Packet b = packet_exp::exp_packet(psub(pload<Packet>(row + j + kLanes), subtract));
    pstore(row + j, a);
    pstore(row + j + kLanes, b);
    first = padd(first, a);
    second = padd(second, b);
  }
  if (j < n) {
    const Packet a = packet_exp::exp_packet(psub(pload<Packet>(row + j), subtract));
    pstore(row + j, a);
    first = padd(first, a);
  }
  sum = padd(sum, padd(first, second));
}

}  // namespace attest
