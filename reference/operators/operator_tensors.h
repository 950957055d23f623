// The outputs of `out=present`: the cache with its new keys, or the last state of linear attention.
#pragma once

#include <vector>

#include "reference/arithmetic/producer.h"
#include "reference/call/call.h"
#include "reference/call/tensors.h"

namespace attest {

/// present_k and present_v, or present_state; none if the call does not request them.
std::vector<TensorId> present_outputs(const Call& call);
/// Whether the output repeats inputs bit for bit.
constexpr bool is_copied(TensorId present) { return present != TensorId::present_state; }

/// The elements of one present output in the order of its axes, and their bounds for each producer.
struct PresentValues {
  std::vector<double> values;
  std::vector<std::vector<double>> bounds;
};
PresentValues expect_present(const Call& call, const Inputs& inputs, TensorId output,
                             const std::vector<Producer>& producers);

/// k as a fill gives it, divided by this: the delta rules want keys of about unit length.
double key_divisor(const Call& call);

}  // namespace attest
