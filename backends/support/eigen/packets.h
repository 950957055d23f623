// Eigen's packets, for register tiles (backends/support/register_tile.h).
//
// They are Eigen's inside. Its public product, `c.noalias() += a * b`, packs both operands in each call, which costs a
// block of queries as much as a tenth to four tenths of its time; here keys and values are packed once for all blocks
// of a tile.
#pragma once

#include <Eigen/Core>

namespace attest::support {

template <class T>
struct PacketSimd {
  using Real = T;
  using Vector = typename Eigen::internal::packet_traits<T>::type;
  static constexpr int kLanes = Eigen::internal::packet_traits<T>::size;
  static constexpr int kRegisters = EIGEN_ARCH_DEFAULT_NUMBER_OF_REGISTERS;
  static Vector load(const T* from) { return Eigen::internal::ploadu<Vector>(from); }
  static Vector set(T value) { return Eigen::internal::pset1<Vector>(value); }
  static Vector multiply_add(const Vector& a, const Vector& b, const Vector& c) {
    return Eigen::internal::pmadd(a, b, c);
  }
  static void store(T* to, const Vector& vector) { Eigen::internal::pstoreu(to, vector); }
};

}  // namespace attest::support
