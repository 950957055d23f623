// Gradients of linear attention as wholes, from those of single tokens (linear_gradient.h), with their bounds.
#pragma once

#include <vector>

#include "reference/arithmetic/producer.h"
#include "reference/operators/operator.h"

namespace attest {

/// Each bound with that of storing its value added.
std::vector<double> stored_bounds(const Call& call, const Producer& producer, TensorId result,
                                  const std::vector<double>& values, std::vector<double> bounds);

/// As Operator::whole, of dk, dv, ddecay, dbeta and dstate.
WholeResults linear_gradients(const Call& call, const Inputs& inputs, const std::vector<TensorId>& results,
                              const std::vector<Producer>& producers, const std::vector<char>& of_key_heads);

}  // namespace attest
