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

}  // namespace attest
