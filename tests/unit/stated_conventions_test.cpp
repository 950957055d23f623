// Results that are right by what a backend states where the field disagrees, and only by that.
#include "harness/verdict/stated_conventions.h"

#include <algorithm>

#include "harness/search/shrink_case.h"
#include "harness/speed/timing/bench.h"
#include "harness/verdict/prepared_case.h"
#include "tests/faulty/around.h"
#include "tests/faulty/faulty.h"
#include "tests/unit/helpers.h"
#include "tests/unit/run_lines.h"

namespace attest {
namespace {

/// A deliberately wrong backend that states what it does.
class Says : public faulty::BackendAround {
 public:
  using Stated = std::vector<std::pair<std::string Conventions::*, std::string>>;
  Says(const std::string& name, Stated stated)
      : BackendAround(faulty::make_named(faulty::faulty_backends(), name)), stated_(std::move(stated)) {}
  Conventions conventions() const override {
    Conventions c;
    for (const auto& [field, value] : stated_) c.*field = value;
    return c;
  }

 private:
  Stated stated_;
};

struct Example {
  std::string backend;
  std::string Conventions::*field;
  std::string value, line, statement;
};

const std::vector<Example> kExamples = {
    {"hidden_nan_leaks", &Conventions::hidden_nan, "leaks", "seq=7x40 dim=4 causal align=top-left poison=hidden:kv",
     "hidden_nan=leaks"},
    {"nan_on_empty_row", &Conventions::empty_row, "nan", "seq=4 dim=4 mask=bool:11QK:none", "empty_row=nan"},
    {"lse_in_base_2", &Conventions::lse_base, "2", "seq=4x9 dim=4 out=o,lse", "lse_base=2"},
    {"lse_plus_infinity", &Conventions::lse_of_empty_row, "inf", "seq=4 dim=4 mask=bool:11QK:none out=o,lse",
     "lse_of_empty_row=inf"},
    {"window_off_by_one", &Conventions::window, "W keys", "seq=9 dim=4 window=2:0", "window=W keys"},
    {"wrong_corner", &Conventions::align, "bottom-right", "seq=3x8 dim=4 causal align=top-left", "align=bottom-right"},
    {"cap_after_mask", &Conventions::softcap, "after bias", "seq=4x8 dim=4 softcap=2 mask=add:11QK:normal",
     "softcap=after bias"},
};

TEST(StatedConventions, MakeAResultRightThatIsTheirs) {
  for (const Example& one : kExamples) {
    Says says(one.backend, {{one.field, one.value}}), silent(one.backend, {});
    const Case source = case_from_line(one.line);
    const Verdict verdict = check_line(source, says, 1);
    EXPECT_EQ(name_of(verdict.status), "convention") << one.backend << ": " << verdict.reason;
    EXPECT_NE(verdict.reason.find(one.statement), std::string::npos) << verdict.reason;
    EXPECT_FALSE(is_failure(verdict));
    EXPECT_EQ(check_line(source, silent, 1).status, Status::fail) << one.backend;
  }
}

TEST(StatedConventions, AreKnownWhereverAResultIsJudged) {
  for (const Example& one : kExamples) {
    Says says(one.backend, {{one.field, one.value}}), silent(one.backend, {});
    const Case source = case_from_line(one.line);
    const PlanSteps steps = steps_from_text("1:prepare 1:upload-shared 1:run 1:download 1:upload 1:run 1:download");
    EXPECT_EQ(check_line(source, says, 1, steps).status, Status::convention) << one.backend;
    const auto why_wrong = [&](Backend& backend, const Call& call) {
      const PreparedCase prepared(source, {&backend}, 1);
      const Answers answers = ask(backend, call);
      GuardedOutputs outputs(call);
      const std::unique_ptr<Plan> plan = make_plan(backend, call);
      execute(*plan, prepared.inputs(), &outputs);
      return prepared.why_wrong(answers, call, prepared.inputs(), outputs);
    };
    Call call = source.problem.call;
    EXPECT_EQ(why_wrong(says, call), "") << one.backend;
    EXPECT_NE(why_wrong(silent, call), "") << one.backend;
    call.scale = 0.75;
    EXPECT_EQ(why_wrong(says, call), "") << one.backend;
    EXPECT_NE(why_wrong(silent, call), "") << one.backend;
  }
}

/// Why this backend has no speed, or nothing.
std::string no_speed(Backend& backend, const std::string& line) {
  return bench_case(case_from_line(line), {&backend}, {100, 50, 10, 2}, {1, 3, 0.002, 3}).lines.at(0).wrong.text;
}

/// Takes every diagonal as bottom-right, and says so or not.
class BottomRight : public faulty::BackendAround {
 public:
  explicit BottomRight(bool says) : BackendAround(faulty::make_example()), says_(says) {}
  Conventions conventions() const override {
    Conventions c;
    if (says_) c.align = "bottom-right";
    return c;
  }
  std::unique_ptr<Plan> prepare(const Call& call) override {
    Call other = call;
    other.align = Align::bottom_right;
    return inner_->prepare(other);
  }

 private:
  bool says_;
};

TEST(StatedConventions, LeaveAResultItsSpeed) {
  for (const Example& one : kExamples) {
    Says says(one.backend, {{one.field, one.value}}), silent(one.backend, {});
    if (no_speed(silent, one.line) == "calls attest's own reference") continue;
    EXPECT_EQ(no_speed(says, one.line), "") << one.backend;
    EXPECT_NE(no_speed(silent, one.line), "") << one.backend;
  }
  for (const char* line :
       {"seq=3x8 dim=4 causal align=top-left", "pass=backward seq=3x8 dim=4 causal align=top-left"}) {
    BottomRight says(true), silent(false);
    EXPECT_EQ(no_speed(says, line), "") << line;
    EXPECT_NE(no_speed(silent, line), "") << line;
  }
}

TEST(StatedConventions, ExcuseNothingElse) {
  // Each states another one's convention: none of these is what it does.
  for (const Example& one : kExamples) {
    for (const Example& other : kExamples) {
      if (one.field == other.field) continue;
      Says says(one.backend, {{other.field, other.value}});
      EXPECT_EQ(check_line(case_from_line(one.line), says, 1).status, Status::fail)
          << one.backend << " with " << other.statement;
    }
  }
  // A row that hides no NaN must be right, and a kernel that is wrong elsewhere is.
  Says leaks("mask_off_by_one", {{&Conventions::hidden_nan, "leaks"}});
  EXPECT_EQ(check_line(case_from_line("seq=5 dim=4 causal"), leaks, 1).status, Status::fail);
  Says visible("fast_path_nan", {{&Conventions::hidden_nan, "leaks"}});
  EXPECT_EQ(check_line(case_from_line("seq=2x300 dim=4 mask=bool:11QK:none"), visible, 1).status, Status::fail);
}

TEST(StatedConventions, ExcuseNoWrongGradient) {
  Says says("backward_scale_twice", {{&Conventions::hidden_nan, "leaks"}});
  EXPECT_EQ(check_line(case_from_line("pass=backward seq=4 dim=4"), says, 1).status, Status::fail);
  Says cornered("backward_scale_twice", {{&Conventions::align, "top-left"}});
  EXPECT_EQ(check_line(case_from_line("pass=backward seq=2x3 dim=4 causal align=bottom-right"), cornered, 1).status,
            Status::fail);
}

TEST(StatedConventions, SeveralMayBeNeededAtOnce) {
  Says both("nan_on_empty_row", {{&Conventions::empty_row, "nan"}, {&Conventions::lse_base, "2"}});
  EXPECT_EQ(check_line(case_from_line("seq=4 dim=4 mask=bool:11QK:none"), both, 1).status, Status::convention);
}

/// A registry of that backend, which states that NaN leaks.
std::vector<BackendEntry> leaking(const char* name) {
  const auto make = [name](const Context&) -> std::unique_ptr<Backend> {
    return std::make_unique<Says>(name, Says::Stated{{&Conventions::hidden_nan, "leaks"}});
  };
  return {{name, make, ""}};
}

TEST(StatedConventions, AreCountedAndNeverRed) {
  const std::vector<BackendEntry> entries = leaking("hidden_nan_leaks");
  const BackendSet backends(entries, {}, {1, ""});
  const CheckOutcome outcome =
      run_lines(backends, {"seq=7x40 dim=4 causal align=top-left poison=hidden:kv", "seq=5 dim=4 causal"}).outcome;
  EXPECT_EQ(outcome.counts.convention, 1u);
  EXPECT_EQ(outcome.counts.pass, 1u);
  EXPECT_EQ(outcome.counts.passed(), 2u);
  EXPECT_EQ(outcome.counts.failures(), 0u);
  EXPECT_EQ(outcome.counts.skipped(), 0u);
  EXPECT_EQ(outcome.problems, std::vector<std::string>{});
}

TEST(StatedConventions, ThatAreFalseAreTold) {
  const std::vector<BackendEntry> entries = leaking("correct");
  const BackendSet backends(entries, {}, {1, ""});
  const CheckOutcome outcome = run_lines(backends, {"seq=5 dim=4"}).outcome;
  ASSERT_EQ(outcome.problems.size(), 1u);
  EXPECT_NE(outcome.problems[0].find("hidden_nan=leaks; observed: stays out"), std::string::npos)
      << outcome.problems[0];
}

TEST(StatedConventions, EveryFieldHasItsValues) {
  const Conventions own;
  for (const ConventionField& field : kConventionFields) {
    EXPECT_TRUE(is_convention_value(field.name, own.*(field.value))) << field.name;
    EXPECT_FALSE(is_convention_value(field.name, "?")) << field.name;
    EXPECT_TRUE(convention_values(field.name).has_value());
  }
  EXPECT_EQ(convention_values("hidden_nan"), "stays out, leaks, shares steps of N keys");
  EXPECT_FALSE(convention_values("no such thing").has_value());
}

}  // namespace
}  // namespace attest
