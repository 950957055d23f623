#include "harness/verdict/judgement.h"

namespace attest {

Judgement judge(const Call& call, const Expectation& expectation, const Bounds& bounds, const GuardedOutputs& outputs,
                bool mapped) {
  Judgement judgement;
  judgement.comparison = compare_outputs(call, expectation, bounds, outputs);
  const Comparison& comparison = judgement.comparison;
  if (mapped && comparison.failed())
    judgement.map = map_errors(call, expectation, bounds, outputs, *comparison.worst());
  if (const std::string guards = outputs.inspect(); !guards.empty()) {
    judgement.left_unwritten = guards.starts_with("left");
    judgement.cause = judgement.left_unwritten ? "output left unwritten" : "wrote outside its output";
    judgement.reason = guards;
  } else if (comparison.failed()) {
    judgement.cause = comparison.cause();
    judgement.reason = comparison.describe();
  }
  return judgement;
}

}  // namespace attest
