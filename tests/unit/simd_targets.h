// Tests of backends/simd for each instruction set that this processor has.
#pragma once

#include <stdlib.h>

#include "backends/simd/kernels.h"
#include "tests/unit/helpers.h"

namespace attest::simd {

/// Calls function(backend, target) with the kernels of each instruction set in turn.
template <class Function>
void with_each_target(const Function& function) {
  for (const Target& target : targets()) {
    setenv("ATTEST_SIMD_TARGET", target.name.c_str(), 1);
    const BackendSet set(registered_backends(), {"simd"}, {1, ""});
    function(*set.all().at(0), target);
  }
  unsetenv("ATTEST_SIMD_TARGET");
}

}  // namespace attest::simd
