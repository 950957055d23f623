// Which gradients a call can be asked for.
#pragma once

#include <vector>

#include "reference/call/call.h"
#include "reference/call/tensor_table.h"

namespace attest {

/// Those of inputs that the call has and that can have one.
inline std::vector<Output> possible_gradients(const Call& p) {
  std::vector<Output> list = outputs_of(p.op);
  std::erase_if(list, [&](Output output) {
    switch (output) {
      case Output::dmask: return !p.mask || !p.mask->additive;
      case Output::dsinks: return !p.sinks;
      case Output::dstate: return !p.initial_state;
      default: return !is_gradient(output);
    }
  });
  return list;
}

}  // namespace attest
