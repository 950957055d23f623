// Tests of backends/simd for each instruction set that this processor has.
#pragma once

#include <stdlib.h>

#include <algorithm>
#include <string>

#include "backends/simd/kernels.h"
#include "backends/simd/worker.h"
#include "backends/support/host_results.h"
#include "backends/support/score_options.h"
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

/// A call's heads and what they need, as a plan holds them.
template <class Heads>
struct HeldCall {
  Problem problem;
  CaseInputs data;
  Inputs inputs;
  const Kernels<float>& kernels;
  support::HostResults<float> results;
  support::ScoreOptions<float> options;
  Heads heads;
  Worker<float> worker;

  HeldCall(const std::string& line, const Target& target)
      : problem(parse_case(line)),
        data(make_inputs(problem)),
        inputs(data.views()),
        kernels(kernels_of<float>(target)),
        results(problem.call),
        options(problem.call, inputs),
        heads(problem.call, kernels, options.visibility()),
        worker(problem.call, kernels, std::max(problem.call.query_length, kNarrowRows), 48, 128, false) {}
};

}  // namespace attest::simd
