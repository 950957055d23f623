// Tuning, on a backend whose parameters take a known time.
#include "harness/speed/studies/tune.h"

#include "harness/tuning/parameters.h"
#include "tests/unit/helpers.h"
#include "tests/unit/tunable_backend.h"

namespace attest {
namespace {

const BenchSettings kBrief{1, 3, 0.001, 1};

TuneResult tuned(const std::vector<std::string>& lines) {
  std::vector<Case> cases;
  for (const std::string& line : lines) cases.push_back(case_from_line(line));
  return tune([] { return std::make_unique<TunableBackend>(); }, cases, Roof{}, kBrief, {});
}

const TuneStep& step(const TuneResult& result, const std::string& parameter, std::int64_t value) {
  for (const TuneStep& one : result.steps) {
    if (one.parameter == parameter && one.value == value) return one;
  }
  ADD_FAILURE() << parameter << "=" << value << " was not tried";
  return result.steps.front();
}

TEST(Tune, TakesTheFastestOfTheRightChoices) {
  // Waits of 0.5, 2 and 4 ms around a run of some microseconds.
  const TuneResult result = tuned({"seq=4 dim=4", "seq=8 dim=4"});
  EXPECT_EQ(result.wrong.text, "");
  EXPECT_EQ(parameters_text(result.tuning), "wait=0");
  EXPECT_LT(result.ratio.ratio, 0.5);
  ASSERT_EQ(result.speeds.size(), 2u);
  EXPECT_EQ(result.speeds[0].case_line, "seq=4 dim=4");
  EXPECT_LT(result.speeds[0].ratio.high, 0.9);
  EXPECT_GT(result.speeds[0].standard_seconds, 1.9e-3);
  EXPECT_TRUE(step(result, "wait", 0).taken);
  EXPECT_FALSE(step(result, "wait", 500).taken);
  EXPECT_GT(step(result, "wait", 4000).ratio, 1.2);
  // The fastest of all doubles the scale.
  const NoSpeedReason& wrong = step(result, "wrong", 1).wrong;
  EXPECT_EQ(wrong.kind, NoSpeed::wrong_result);
  EXPECT_TRUE(wrong.text.starts_with("seq=4 dim=4: ")) << wrong.text;
  EXPECT_FALSE(step(result, "wrong", 1).taken);
}

TEST(Tune, WhatIsRefusedIsLeftOut) {
  const TuneResult result = tuned({"op=gated seq=8 dim=4", "seq=4 dim=4"});
  EXPECT_EQ(result.wrong.text, "");
  EXPECT_EQ(result.cases, std::vector<std::string>{"seq=4 dim=4"});
  const TuneResult nothing = tuned({"op=gated seq=8 dim=4"});
  EXPECT_EQ(nothing.wrong.kind, NoSpeed::refused);
  EXPECT_TRUE(nothing.cases.empty());
}

/// Waits alike, whatever is chosen.
class Indifferent : public TunableBackend {
 public:
  std::unique_ptr<Plan> prepare(const Call& call) override {
    const std::vector<std::int64_t> chosen = values_of(tuning());
    tune({kWait, chosen.at(1)});
    auto plan = TunableBackend::prepare(call);
    tune(chosen);
    return plan;
  }
};

TEST(Tune, NoiseChoosesNothing) {
  const TuneResult result =
      tune([] { return std::make_unique<Indifferent>(); }, {case_from_line("seq=4 dim=4")}, Roof{}, kBrief, {});
  EXPECT_EQ(result.wrong.text, "");
  EXPECT_EQ(parameters_text(result.tuning), "");
}

/// Wrong as it stands.
class Wrong : public TunableBackend {
 public:
  std::unique_ptr<Plan> prepare(const Call& call) override {
    Call given = call;
    given.scale = 3 * call.scale_value();
    return TunableBackend::prepare(given);
  }
};

TEST(Tune, NothingIsChosenForAWrongBackend) {
  const TuneResult result =
      tune([] { return std::make_unique<Wrong>(); }, {case_from_line("seq=4 dim=4")}, Roof{}, kBrief, {});
  EXPECT_EQ(result.wrong.kind, NoSpeed::wrong_result) << result.wrong.text;
  EXPECT_EQ(parameters_text(result.tuning), "");
  EXPECT_TRUE(result.speeds.empty());
}

}  // namespace
}  // namespace attest
