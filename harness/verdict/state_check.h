// A plan of a case walked so that nothing may count on the state that things are in: memory, data and other plans.
//
// A result must be a function of the call and of the data uploaded last. What runs before it, beside it and elsewhere
// is chosen by the case alone, so that a failure repeats with its line.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

#include "backends/backend.h"
#include "harness/cases/inputs.h"
#include "harness/comparison/guarded_outputs.h"
#include "harness/verdict/plan_execution.h"
#include "reference/call/problem.h"

namespace attest {

struct StateSteps {
  bool junk_memory = false;  ///< what is allocated until the case's own data come holds no zeros
  bool warm_up = false;      ///< the plan runs before on other data at the same addresses
  bool interleaved = false;  ///< other plans of the backend are alive and take turns with it; then another thread
  bool life = false;         ///< three plans take a random sequence of steps (plan_life.h)
  bool operator==(const StateSteps&) const = default;
};

/// Small cases take all steps; of large ones a fixed share is chosen by the case's line. None where tensors would have
/// to be held several times in much memory.
StateSteps state_steps(const Problem& problem, std::uint64_t run_seed = 0);
/// What draws the sequence of a case, and the share that has one: its line and the seed of the run.
std::uint64_t life_seed(const Problem& problem, std::uint64_t run_seed);

class StateCheck {
 public:
  /// `problem` and `data`, which belong together, outlive this. The backend takes the call.
  StateCheck(Backend& backend, const Problem& problem, const CaseInputs& data, StateSteps steps);
  ~StateCheck();

  /// The plan is made and takes its steps; the result is that of the last walk, and so are the seconds. Throws as
  /// attest::walk.
  StepSeconds execute(GuardedOutputs& outputs);
  /// Throws what an interleaved plan met that no verdict may pass over, such as a crash; for a case that is right by
  /// itself.
  void require_interleaved() const;
  /// The same result once more.
  void download_again(GuardedOutputs& outputs);
  /// The three steps once more, in a thread that the plan has never seen.
  void execute_in_another_thread(GuardedOutputs& outputs);

 private:
  struct InterleavedPlan;
  /// Null when the backend doesn't take it or throws.
  std::unique_ptr<InterleavedPlan> interleaved_plan(const Problem& problem);
  void accompany(const Problem& problem);
  void warm_up_plan(GuardedOutputs& outputs);
  void interleaved_do(void (InterleavedPlan::*step)());

  Backend& backend_;
  const Problem& problem_;
  const CaseInputs& data_;
  const StateSteps steps_;
  CaseInputs launched_before_;  ///< where lengths are data: what the first run of the plan read
  CaseInputs staged_;           ///< with a warm_up: what the plan reads, other data first
  std::vector<std::unique_ptr<InterleavedPlan>> interleaved_;  ///< those that the backend takes
  std::exception_ptr interleaved_fault_;
  std::unique_ptr<Plan> plan_;
};

}  // namespace attest
