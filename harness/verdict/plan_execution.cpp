#include "harness/verdict/plan_execution.h"

#include <barrier>
#include <exception>
#include <thread>

#include "harness/base/float_environment.h"
#include "harness/base/stopwatch.h"
#include "reference/call/launch.h"

namespace attest {
namespace {

void refuse_change(const FloatEnvironment& environment) {
  const FailureCause cause{cause_of(environment.changed())};
  if (!cause.empty()) throw CaseFault(Status::fail, cause, cause.text());
}

}  // namespace

std::unique_ptr<Plan> make_plan(Backend& backend, const Call& call) {
  const FloatEnvironment environment;
  std::unique_ptr<Plan> plan = backend.prepare(planned(call));
  if (!plan) throw BackendError("prepare returned no plan");
  refuse_change(environment);
  return plan;
}

void run_plan(Plan& plan) {
  const FloatEnvironment environment;
  plan.run();
  refuse_change(environment);
}

void run_side_by_side(Plan& one, Plan& other) {
  if (auto* elsewhere = dynamic_cast<RunsElsewhere*>(&one)) {
    elsewhere->run_beside(other);
    return;
  }
  std::barrier<> together(2);
  std::exception_ptr failures[2];
  const auto run = [&](Plan& plan, std::exception_ptr& failure) {
    together.arrive_and_wait();
    try {
      plan.run();
    } catch (...) {
      failure = std::current_exception();
    }
  };
  std::thread beside([&] { run(other, failures[1]); });
  run(one, failures[0]);
  beside.join();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

StepSeconds execute(Plan& plan, const Inputs& inputs, GuardedOutputs* outputs, const BetweenSteps& between) {
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
  execute(*make_plan(backend, call), inputs, &outputs);
}

}  // namespace attest
