// The kernel of fused gradients in Eigen's packets.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <limits>

#include "backends/support/eigen/packet_exp.h"
#include "backends/support/eigen/packets.h"
#include "backends/support/register_gradients.h"

namespace attest::support {

template <class T>
struct GradientPackets : PacketSimd<T> {
  using Packet = typename PacketSimd<T>::Vector;

  static void weigh(T* scores, T* products, std::int64_t n, T lse, T shift) {
    using namespace Eigen::internal;
    const Packet subtract = pset1<Packet>(lse), add = pset1<Packet>(shift);
    const Packet nothing = pset1<Packet>(-std::numeric_limits<T>::infinity());
    for (std::int64_t j = 0; j < n; j += PacketSimd<T>::kLanes) {
      const Packet score = ploadu<Packet>(scores + j), hidden = pcmp_eq(score, nothing);
      const Packet weight = pandnot(packet_exp::exp_packet(psub(score, subtract)), hidden);
      pstoreu(scores + j, weight);
      pstoreu(products + j, pandnot(pmul(weight, padd(ploadu<Packet>(products + j), add)), hidden));
    }
  }

  static void tanh_row(T* row, std::int64_t n) { tanh_in_place(row, n); }
};

template <class Real>
using PacketGradients = RegisterGradients<GradientPackets<Real>>;

}  // namespace attest::support
