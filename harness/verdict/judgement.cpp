#include "harness/verdict/judgement.h"

#include <utility>

namespace attest {

Judgement judge(const Call& call, const Expectation& expectation, const Bounds& bounds, const GuardedOutputs& outputs,
                bool mapped) {
  Judgement judgement;
  judgement.comparison = compare_outputs(call, expectation, bounds, outputs);
  const Comparison& comparison = judgement.comparison;
  if (mapped && comparison.failed())
    judgement.map = map_errors(call, expectation, bounds, outputs, *comparison.worst());
  if (OutputFault guards = outputs.inspect(); !guards.empty()) {
    judgement.cause = std::move(guards.cause);
    judgement.reason = std::move(guards.reason);
  } else if (comparison.failed()) {
    judgement.cause = comparison.cause();
    judgement.reason = comparison.describe();
  }
  return judgement;
}

}  // namespace attest
