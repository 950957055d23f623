// Who made a result: how it rounds, and the type in which it hands its numbers over.
#pragma once

#include <optional>
#include <vector>

#include "reference/arithmetic/arithmetic.h"
#include "reference/call/tensor_table.h"

namespace attest {

/// An arithmetic together with the types in which its results are handed over.
struct Producer {
  Arithmetic arithmetic;
  std::optional<DType> stored;  ///< of every result, as those of the reference; unset: as the call says
  bool operator==(const Producer&) const = default;

  DType type_of(const Call& call, TensorId result) const {
    if (!stored) return attest::type_of(call, result);
    const bool of_sums = result == TensorId::lse || result == TensorId::row_max || result == TensorId::row_sum ||
                         result == TensorId::dsinks;
    return of_sums ? accumulator_of(*stored) : *stored;
  }
};

/// How each makes one of the results.
inline std::vector<Arithmetic> arithmetics_of(const std::vector<Producer>& producers, TensorId result) {
  std::vector<Arithmetic> list;
  for (const Producer& producer : producers) list.push_back(producer.arithmetic.of(result));
  return list;
}

/// The arithmetic of reference/ itself, whose own error is added to every comparison.
inline Arithmetic reference_arithmetic() {
  Arithmetic a;
  a.accumulator = a.stored_weights = DType::f64;
  a.exp_ulps = a.log_ulps = 1;
  a.normalised_before_storage = a.kept_weights = a.delta_from_weights = true;
  return a;
}

}  // namespace attest
