// What a generated mutant is built with: a backend that runs a changed copy of the example's kernel.
#pragma once

#include <memory>
#include <string>

#include "backends/backend.h"

namespace attest::mutants {

/// What a mutant writes for a hidden key instead of -inf.
template <class Real>
constexpr Real kAlmostHidden = static_cast<Real>(-1e4);

/// The example backend as registered: what mutants declare, and the correct kernel they are compared with.
const BackendEntry& example_entry();

/// f32 accumulation only: the kernel is one template, and half the code compiles in half the time.
template <class MutatedPlan>
class MutantBackend : public Backend {
 public:
  MutantBackend(std::string name, OperatorTrait of)
      : name_(std::move(name)), of_(of), original_(example_entry().make({1, ""})) {}

  Identity identity() const override { return {name_, "a changed copy of example", "CPU, 1 thread"}; }
  int contract() const override { return original_->contract(); }
  Arithmetic arithmetic(const Call& problem) const override { return original_->arithmetic(problem); }
  std::optional<Refusal> refuse(const Call& problem) const override {
    if (problem.dtype == DType::f64) return Refusal{"mutants accumulate in f32"};
    if (!has_trait(problem.op, of_)) return Refusal{"the mutated kernel is another operator's"};
    return original_->refuse(problem);
  }
  std::unique_ptr<Plan> prepare(const Call& problem) override { return std::make_unique<MutatedPlan>(problem); }

 private:
  std::string name_;
  OperatorTrait of_;  ///< of the operators that the kernel computes
  std::unique_ptr<Backend> original_;
};

}  // namespace attest::mutants
