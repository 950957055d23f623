// One case with its inputs, reference values and bounds, and the verdict on each backend.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/backend.h"
#include "harness/cases/case.h"
#include "harness/comparison/expectation.h"
#include "harness/verdict/answers.h"
#include "harness/verdict/judgement.h"
#include "harness/verdict/known_mistakes.h"
#include "harness/verdict/plan_life.h"
#include "harness/verdict/state_check.h"
#include "harness/verdict/verdict.h"

namespace attest {

/// A case with its data in memory, what a set of backends says about it, and the expectation for them.
class PreparedCase {
 public:
  /// Throws UserError when the machine has too little memory.
  PreparedCase(const Case& source, const std::vector<Backend*>& backends, int threads);
  /// Takes the result of ask_all, and calls no backend.
  PreparedCase(const Case& source, std::vector<AskedBackend> backends, int threads);

  const Case& source() const { return source_; }
  const Problem& problem() const { return source_.problem; }
  const Inputs& inputs() const { return views_; }
  const Expectation& expectation() const { return expectation_; }
  /// The data that the inputs are views of.
  const CaseInputs& own_data() const { return data(); }
  /// What a backend said when the case was prepared for it; another one is asked now. Throws what the backend threw.
  Answers answers_of(const Backend& backend) const;

  /// Runs the backend on this case and compares. Never throws what a backend throws: that is a failed verdict.
  /// A new plan goes through what state_check.h says. With `plan`, made by the backend for this problem, that plan is
  /// walked once instead; and with `elsewhere` on the case's data that lie there.
  Verdict check(Backend& backend, Plan* plan = nullptr, const Inputs* elsewhere = nullptr) const;

  /// Holds results of a backend for a call, this case's or one made of it, against the bound: the sentence of what is
  /// wrong, or empty. `answers` are about that call.
  std::string why_wrong(const Answers& answers, const Call& call, const Inputs& inputs,
                        const GuardedOutputs& outputs) const;
  /// The same. Throws CaseFault when they are wrong; `cause` says how they came about, as Cause::run_again.
  void require_right(const Answers& answers, const Call& call, const Inputs& inputs, const GuardedOutputs& outputs,
                     Cause cause) const;

  /// From now on plans run once, with nothing before, beside or after them: for simulators and debuggers.
  void run_once() { once_ = true; }
  /// From now on cases are drawn by this seed, too, in which plans take a random sequence of steps, and the sequence.
  void draw_steps_by(std::uint64_t seed) { steps_seed_ = seed; }
  /// From now on plans also take these steps (plan_life.h), and no others that are drawn.
  void take_these_steps(PlanSteps steps) { given_steps_ = std::move(steps); }
  /// From now on failures say where they are wrong (Verdict::error_map).
  void map_failures() { maps_ = true; }
  /// From now on failures say which known mistakes give the same (Verdict::mistakes), in their reason, too.
  /// `finder_of` gives what remembers a backend's earlier ones, by its name.
  void diagnose_failures(std::function<MistakeFinder&(const std::string&)> finder_of = {}) {
    diagnoses_ = true;
    finder_of_ = std::move(finder_of);
  }
  /// From now on wrong numbers are handed to `keep`, with how they are said to be rounded; from several threads where
  /// several backends are checked at once.
  using Keep = std::function<void(const Verdict&, const Arithmetic&, std::shared_ptr<const GuardedOutputs>)>;
  void keep_wrong_results(Keep keep) { keep_ = std::move(keep); }

  /// For a file that holds results: the reference against them. The "backend" is named reference.
  Verdict check_reference() const;
  bool has_golden() const { return source_.golden.has_value(); }

 private:
  const CaseInputs& data() const { return source_.inputs ? *source_.inputs : made_; }
  Judgement judge_results(const GuardedOutputs& outputs, const Standard& standard) const;
  /// The walk of state_check.h, judged after each of its parts.
  Judgement judge_with_states(Backend& backend, const Standard& standard, GuardedOutputs& outputs,
                              StepSeconds& seconds) const;
  Judgement judge_again(StateCheck& state, StateSteps steps, const Standard& standard, const GuardedOutputs& outputs,
                        Judgement first) const;
  Judgement judge_unwritten(StateCheck& state, const Standard& standard, Judgement first) const;
  /// A right result once more, among the steps of three plans.
  Judgement judge_life(Backend& backend, const Standard& standard, Judgement first) const;
  std::string state_that_matters(Backend& backend, StateSteps steps, const Standard& standard) const;
  void check_golden(Backend& backend, const Answers& answers, Verdict& verdict) const;
  void diagnose(const GuardedOutputs& outputs, const Producer& producer, Verdict& verdict) const;

  const Case& source_;
  const int threads_;
  bool once_ = false, maps_ = false, diagnoses_ = false;
  Keep keep_;
  std::function<MistakeFinder&(const std::string&)> finder_of_;
  std::uint64_t steps_seed_ = 0;
  PlanSteps given_steps_;
  std::vector<AskedBackend> backends_;
  CaseInputs made_;
  Inputs views_;
  Expectation expectation_;
};

/// The command that repeats a verdict on this case.
std::string repro_command(const Case& source, const Identity& backend, const std::string& command = "check");
/// The command with another case before this one.
std::string repro_after(const Case& earlier, const Case& source, const std::string& command);
/// The command with an option before the case; `option` is quoted where necessary.
std::string repro_with(const std::string& option, const Case& source, const std::string& command);

}  // namespace attest
