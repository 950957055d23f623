// What `out=present` asks for: the cache with its new keys, or the state that linear attention leaves behind.
#pragma once

#include <vector>

#include "reference/arithmetic/producer.h"
#include "reference/call/call.h"
#include "reference/call/tensors.h"

namespace attest {

/// present_k and present_v, or present_state; none where the call doesn't ask.
std::vector<TensorId> present_outputs(const Call& call);
/// Whether it repeats inputs bit for bit.
constexpr bool is_copied(TensorId present) { return present != TensorId::present_state; }

/// The elements of one present output in the order of its axes, and for each producer how far they may stray.
struct PresentValues {
  std::vector<double> values;
  std::vector<std::vector<double>> bounds;
};
PresentValues expect_present(const Call& call, const Inputs& inputs, TensorId output,
                             const std::vector<Producer>& producers);

/// k as a fill gives it, divided by this: the delta rules want keys of about unit length.
double key_divisor(const Call& call);

}  // namespace attest
