// exp of a packet for softmax weights: arguments at or below 0, exactly 0 far below, NaN stays NaN.
//
// Eigen's own pexp clamps -inf to about 1e-39 and spends half its time on scaling by 2^n in full generality.
// Range reduction by Cody and Waite, n = round(x / ln 2); polynomial of degree 6 on [-ln2/2, ln2/2].
#pragma once

#include <Eigen/Core>
#include <cmath>
#include <limits>

namespace attest {

/// Largest error of either type over the arguments that do not give 0, in ulps; see tests/unit/eigen_exp_test.cpp.
inline constexpr double kPacketExpUlps = 2;

template <class Real>
struct PacketExp {
  /// Below this the result would be subnormal: 0 is given.
  static constexpr Real kLowest = sizeof(Real) == 4 ? Real(-87.0) : Real(-708.0);

  Real operator()(Real x) const { return x <= kLowest ? Real{0} : std::exp(x); }

  template <class Packet>
  Packet packetOp(const Packet& x) const {
    using namespace Eigen::internal;
    Packet y;
    if constexpr (sizeof(Real) == 4) {
      y = exp_f32(pmax(x, pset1<Packet>(kLowest)));
    } else {
      y = pexp(x);
    }
    return pandnot(y, pcmp_le(x, pset1<Packet>(kLowest)));
  }

 private:
  template <class Packet>
  static Packet exp_f32(const Packet& x) {
    using namespace Eigen::internal;
    const Packet n = pround(pmul(x, pset1<Packet>(1.44269504088896341f)));
    Packet r = pmadd(n, pset1<Packet>(-0.693359375f), x);
    r = pmadd(n, pset1<Packet>(2.12194440e-4f), r);
    // Cephes' expf polynomial: exp(r) = 1 + r + r^2 * p(r).
    Packet p = pset1<Packet>(1.9875691500e-4f);
    p = pmadd(p, r, pset1<Packet>(1.3981999507e-3f));
    p = pmadd(p, r, pset1<Packet>(8.3334519073e-3f));
    p = pmadd(p, r, pset1<Packet>(4.1665795894e-2f));
    p = pmadd(p, r, pset1<Packet>(1.6666665459e-1f));
    p = pmadd(p, r, pset1<Packet>(5.0000001201e-1f));
    const Packet e = padd(pmadd(p, pmul(r, r), r), pset1<Packet>(1.0f));
    // 2^n by its exponent's bits: n lies between -126 and 0 here, or x was NaN and e is.
    using Integers = typename unpacket_traits<Packet>::integer_packet;
    const Integers exponent = pcast<Packet, Integers>(padd(n, pset1<Packet>(127.0f)));
    return pmul(e, preinterpret<Packet>(plogical_shift_left<23>(exponent)));
  }
};

}  // namespace attest

template <class Real>
struct Eigen::internal::functor_traits<attest::PacketExp<Real>> {
  enum { Cost = 20, PacketAccess = packet_traits<Real>::HasExp, IsRepeatable = true };
};
