#include "harness/verdict/judgement.h"

#include <utility>

#include "harness/verdict/stated_conventions.h"

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

Standard standard_of(const Answers& answers) {
  Standard standard;
  standard.producer.arithmetic = answers.arithmetic;
  standard.conventions = answers.conventions;
  return standard;
}

Judgement judge_as_stated(const Problem& problem, const Inputs& inputs, const Expectation& expectation,
                          const Standard& standard, const GuardedOutputs& outputs, const JudgeOptions& options) {
  const std::size_t producer = expectation.index_of(standard.producer);
  Judgement judgement = judge(problem, expectation, expectation.bounds[producer], outputs, options.mapped);
  if (!judgement.wrong() || !is_of_numbers(judgement.cause)) return judgement;
  judgement.convention = right_by_convention(standard.conventions, problem, inputs, expectation, producer, outputs,
                                             options.threads, options.budget);
  if (judgement.convention.empty()) return judgement;
  judgement.cause = {};
  judgement.reason.clear();
  judgement.map.reset();
  return judgement;
}

bool is_of_numbers(const FailureCause& cause) {
  switch (cause.kind) {
    case Cause::outside_bound:
    case Cause::not_finite:
    case Cause::nan_lost:
    case Cause::infinity_lost: return true;
    default: return false;
  }
}

}  // namespace attest
