// The walk of a plan: upload, run, download. Everything outside the timing loop of a benchmark goes through here.
#pragma once

#include <functional>
#include <memory>

#include "backends/backend.h"
#include "harness/comparison/guarded_outputs.h"
#include "harness/verdict/verdict.h"

namespace attest {

/// A plan of the backend for this call, which is not told lengths that are data. Throws what the backend throws, and
/// CaseFault where it left the floating-point modes changed.
std::unique_ptr<Plan> make_plan(Backend& backend, const Call& call);

/// Runs a plan whose data lie ready. Throws as make_plan.
void run_plan(Plan& plan);

/// A plan whose run is elsewhere than in the calling thread, and that must itself see to it that another runs
/// meanwhile.
class RunsElsewhere {
 public:
  virtual ~RunsElsewhere() = default;
  /// `other` is such a plan of the same backend; both have run on what was uploaded.
  virtual void run_beside(Plan& other) = 0;
};

/// Runs both at the same time, each in a thread of its own; both have run on what was uploaded. Throws what they throw.
void run_side_by_side(Plan& one, Plan& other);

/// What others do while a plan stands between two of its steps; each may be empty.
struct BetweenSteps {
  std::function<void()> after_upload, after_run;
};

/// The three steps, each timed. With `outputs` null the result is left where it is. Throws as make_plan.
StepSeconds execute(Plan& plan, const Inputs& inputs, GuardedOutputs* outputs, const BetweenSteps& between = {});

/// A new plan, walked once.
void walk_once(Backend& backend, const Call& call, const Inputs& inputs, GuardedOutputs& outputs);

}  // namespace attest
