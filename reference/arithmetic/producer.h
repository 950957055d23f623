// Who made a result: how it rounds, and the type in which it hands its numbers over.
#pragma once

#include <vector>

#include "reference/arithmetic/arithmetic.h"

namespace attest {

/// An arithmetic together with the type in which its results are handed over.
struct Producer {
  Arithmetic arithmetic;
  DType stored = DType::f32;
  bool operator==(const Producer&) const = default;
};

inline std::vector<Arithmetic> arithmetics_of(const std::vector<Producer>& producers) {
  std::vector<Arithmetic> list;
  for (const Producer& producer : producers) list.push_back(producer.arithmetic);
  return list;
}

/// The arithmetic of reference/ itself, whose own error is added to every comparison.
inline Arithmetic reference_arithmetic() {
  Arithmetic a;
  a.accumulator = a.stored_weights = DType::f64;
  a.exp_ulps = a.log_ulps = 1;
  a.normalised_before_storage = true;
  return a;
}

}  // namespace attest
