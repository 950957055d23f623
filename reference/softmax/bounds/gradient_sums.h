// The gradients that are sums over query rows, with their bounds: dk, dv, dmask and dsinks.
#pragma once

#include <vector>

#include "reference/operators/operator.h"

namespace attest {

/// The gradients among `results`, which are all of this kind. Of dk and dv the key heads for which `of_key_heads` is
/// not 0, by batch and key head; all where it is empty.
WholeResults sum_gradients(const Call& call, const Inputs& inputs, const std::vector<TensorId>& results,
                           const std::vector<Producer>& producers, const std::vector<char>& of_key_heads);

}  // namespace attest
