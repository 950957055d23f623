// Results held against what they must be: their guards, their classes, their bounds.
#pragma once

#include <optional>
#include <string>

#include "harness/comparison/cause.h"
#include "harness/comparison/compare.h"
#include "harness/comparison/error_map.h"
#include "harness/comparison/expectation.h"
#include "harness/comparison/guarded_outputs.h"
#include "harness/verdict/verdict.h"
#include "reference/call/call.h"

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

}  // namespace attest
