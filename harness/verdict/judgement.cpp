#include "harness/verdict/judgement.h"

namespace attest {

Judgement judge(const Call& call, const Expectation& expectation, const Bounds& bounds, const GuardedOutputs& outputs) {
  Judgement judgement{compare_outputs(call, expectation, bounds, outputs), "", ""};
  if (const std::string guards = outputs.inspect(); !guards.empty()) {
    judgement.left_unwritten = guards.starts_with("left");
    judgement.cause = judgement.left_unwritten ? "output left unwritten" : "wrote outside its output";
    judgement.reason = guards;
  } else if (judgement.comparison.failed()) {
    judgement.cause = judgement.comparison.cause();
    judgement.reason = judgement.comparison.describe();
  }
  return judgement;
}

}  // namespace attest
