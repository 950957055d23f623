// The walk of a plan: its steps in order, and nothing changed around them.
#include "harness/verdict/plan_execution.h"

#include <gtest/gtest.h>

#include <cfenv>
#include <string>

#include "harness/cases/inputs.h"
#include "reference/options/case_line.h"

namespace attest {
namespace {

/// Notes its steps; changes the rounding mode where it is told to.
struct Noted {
  std::string steps;
  bool in_prepare = false, in_run = false, no_plan = false;
};

class NotingPlan : public Plan {
 public:
  explicit NotingPlan(Noted& noted) : noted_(noted) {}
  void upload(const Inputs&) override { noted_.steps += " upload"; }
  void run() override {
    noted_.steps += " run";
    if (noted_.in_run) std::fesetround(FE_UPWARD);
  }
  void download(const Outputs&) override { noted_.steps += " download"; }

 private:
  Noted& noted_;
};

class NotingBackend : public Backend {
 public:
  explicit NotingBackend(Noted& noted) : noted_(noted) {}
  Identity identity() const override { return {"noting", "", ""}; }
  int contract() const override { return 3; }
  std::optional<Refusal> refuse(const Call&) const override { return std::nullopt; }
  Arithmetic arithmetic(const Call&) const override { return {}; }
  std::unique_ptr<Plan> prepare(const Call&) override {
    noted_.steps += "prepare";
    if (noted_.in_prepare) std::fesetround(FE_DOWNWARD);
    return noted_.no_plan ? nullptr : std::make_unique<NotingPlan>(noted_);
  }

 private:
  Noted& noted_;
};

class PlanExecution : public testing::Test {
 protected:
  PlanExecution() : problem_(parse_case("seq=2 dim=2")), inputs_(make_inputs(problem_)), backend_(noted_) {}
  ~PlanExecution() override { std::fesetround(FE_TONEAREST); }
  Noted noted_;
  Problem problem_;
  CaseInputs inputs_;
  NotingBackend backend_;
};

TEST_F(PlanExecution, TakesItsStepsInOrder) {
  GuardedOutputs outputs(problem_);
  walk_once(backend_, problem_, inputs_.views(), outputs);
  EXPECT_EQ(noted_.steps, "prepare upload run download");
}

TEST_F(PlanExecution, LeavesTheResultWhereNobodyWantsIt) {
  const StepSeconds seconds = execute(*make_plan(backend_, problem_), inputs_.views(), nullptr);
  EXPECT_EQ(noted_.steps, "prepare upload run");
  EXPECT_EQ(seconds.download, 0);
  EXPECT_GE(seconds.run, 0);
}

TEST_F(PlanExecution, ABackendWithoutAPlanFails) {
  noted_.no_plan = true;
  EXPECT_THROW(make_plan(backend_, problem_), BackendError);
}

TEST_F(PlanExecution, AChangedRoundingModeIsAFaultAndIsPutBack) {
  noted_.in_prepare = true;
  try {
    make_plan(backend_, problem_);
    ADD_FAILURE();
  } catch (const CaseFault& fault) {
    EXPECT_EQ(fault.status(), Status::fail);
    EXPECT_EQ(fault.cause().kind, Cause::rounding_mode_changed);
  }
  EXPECT_EQ(std::fegetround(), FE_TONEAREST);
  noted_.in_prepare = false;
  noted_.in_run = true;
  EXPECT_THROW(execute(*make_plan(backend_, problem_), inputs_.views(), nullptr), CaseFault);
  EXPECT_EQ(std::fegetround(), FE_TONEAREST);
}

}  // namespace
}  // namespace attest
