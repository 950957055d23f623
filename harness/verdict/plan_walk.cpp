#include "harness/verdict/plan_walk.h"

#include "harness/base/float_environment.h"
#include "harness/base/stopwatch.h"

namespace attest {
namespace {

void refuse_change(const FloatEnvironment& environment) {
  const FailureCause cause{cause_of(environment.changed())};
  if (!cause.empty()) throw CaseFault(Status::fail, cause, cause.text());
}

}  // namespace

std::unique_ptr<Plan> make_plan(Backend& backend, const Call& call) {
  const FloatEnvironment environment;
  std::unique_ptr<Plan> plan = backend.prepare(call);
  if (!plan) throw BackendError("prepare returned no plan");
  refuse_change(environment);
  return plan;
}

StepSeconds walk(Plan& plan, const Inputs& inputs, GuardedOutputs* outputs, const BetweenSteps& between) {
  StepSeconds seconds;
  const FloatEnvironment environment;
  seconds.upload = timed([&] { plan.upload(inputs); });
  if (between.after_upload) between.after_upload();
  seconds.run = timed([&] { plan.run(); });
  refuse_change(environment);
  if (between.after_run) between.after_run();
  if (outputs) seconds.download = timed([&] { plan.download(outputs->views()); });
  return seconds;
}

void walk_once(Backend& backend, const Call& call, const Inputs& inputs, GuardedOutputs& outputs) {
  walk(*make_plan(backend, call), inputs, &outputs);
}

}  // namespace attest
