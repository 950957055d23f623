// Results held against what they must be: their guards, their classes, their bounds.
#pragma once

#include <optional>
#include <string>

#include "backends/conventions.h"
#include "harness/comparison/cause.h"
#include "harness/comparison/compare.h"
#include "harness/comparison/error_map.h"
#include "harness/comparison/expectation.h"
#include "harness/comparison/guarded_outputs.h"
#include "harness/verdict/answers.h"
#include "harness/verdict/verdict.h"
#include "reference/call/call.h"
#include "reference/call/problem.h"
#include "reference/call/tensors.h"

namespace attest {

struct Judgement {
  Comparison comparison;
  FailureCause cause;                ///< none when nothing is wrong
  std::string reason;                ///< and the sentence for it
  std::optional<ErrorMap> map;       ///< where elements are wrong, if any are and it is wanted
  std::string convention;            ///< where nothing is wrong only by what the backend states: the statements
  Status status = Status::fail;      ///< where something is wrong
  std::string steps{};               ///< among which the result is wrong, if it is right otherwise (plan_life.h)
  std::optional<Repeats> repeats{};  ///< of runs that differ in nothing, where some are wrong and some are right
  bool state_matters = false;        ///< the cause says already what the result depends on and mustn't

  bool wrong() const { return !cause.empty(); }
};

/// `bounds`: those of the arithmetic that the results come from. `mapped`: the map is wanted, which takes a second look
/// at every element.
Judgement judge(const Call& call, const Expectation& expectation, const Bounds& bounds, const GuardedOutputs& outputs,
                bool mapped);

/// By what results are judged: whose arithmetic it is, and what else is stated.
struct Standard {
  Producer producer;  ///< one of the expectation
  Conventions conventions{};
};

/// For a whole call.
Standard standard_of(const Answers& answers);

struct JudgeOptions {
  bool mapped = false;         ///< as for judge
  int threads = 1;             ///< of the reference, which computes the call again as a backend takes it
  double budget = kRowBudget;  ///< of that, as for expect
};

/// The same; what is wrong by attest's definition and right by what is stated is no fault but a convention.
Judgement judge_as_stated(const Problem& problem, const Inputs& inputs, const Expectation& expectation,
                          const Standard& standard, const GuardedOutputs& outputs, const JudgeOptions& options);

/// Whether an output holds other numbers than it should: nothing else is wrong then.
bool is_of_numbers(const FailureCause& cause);

}  // namespace attest
