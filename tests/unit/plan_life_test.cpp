// The life of plans: sequences are possible and repeat themselves; what counts on an order of steps is found, and the
// shortest sequence that shows it.
#include "harness/verdict/plan_life.h"

#include <algorithm>
#include <set>

#include "harness/search/shrink_case.h"
#include "harness/verdict/state_check.h"
#include "tests/faulty/keeping.h"
#include "tests/unit/helpers.h"

namespace attest {
namespace {

TEST(PlanLife, DrawnStepsArePossibleRepeatThemselvesAndReadBack) {
  std::set<std::string> texts;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const PlanSteps steps = draw_steps(seed);
    EXPECT_EQ(possible_steps(steps), steps);
    EXPECT_EQ(draw_steps(seed), steps);
    EXPECT_EQ(steps_from_text(steps_text(steps)), steps);
    EXPECT_NE(std::find(steps.begin(), steps.end(), PlanStep{1, PlanAct::download}), steps.end());
    texts.insert(steps_text(steps));
  }
  EXPECT_EQ(texts.size(), 200u);
}

TEST(PlanLife, ATextThatIsNoSequenceIsRefused) {
  for (const char* text : {"prepare", "4:prepare", "1:jump", "1:run", "1:prepare 1:run",
                           "1:prepare 1:upload 1:download", "1:prepare 2:upload", "1:prepare 1:prepare"}) {
    EXPECT_THROW(steps_from_text(text), UserError) << text;
  }
  EXPECT_TRUE(steps_from_text("").empty());
}

TEST(PlanLife, AShareOfCasesHasOneAndTheRunsSeedChoosesWhich) {
  int lives = 0, others = 0;
  for (int seed = 0; seed < 600; ++seed) {
    const Problem p = parse_case("seq=5x7 dim=4 seed=" + std::to_string(seed));
    lives += state_steps(p).life;
    others += state_steps(p).life && state_steps(p, 1).life;
  }
  EXPECT_NEAR(lives, 100, 40);
  EXPECT_LT(others, lives);
}

struct Mistake {
  const char *backend, *steps;
};

TEST(PlanLife, FindsWhatCountsOnAnOrderOfSteps) {
  for (const Mistake& mistake : {
           Mistake{"third_run", "1:prepare 1:upload 1:run 1:run 1:run 1:download"},
           Mistake{"ring_of_results", "1:prepare 2:prepare 1:upload 2:upload 1:run 2:run 2:run 2:run 2:run 1:download"},
           Mistake{"pool_of_buffers", "1:prepare 2:prepare 1:upload 1:run 2:destroy 1:download"},
           Mistake{"pack_by_address", "1:prepare 1:upload-shared 1:run 1:download"},
           Mistake{"sample_of_values", "1:prepare 1:upload-one 1:run 1:upload 1:run 1:download"},
       }) {
    SCOPED_TRACE(mistake.backend);
    const BackendSet wrong(faulty::keeping_backends(), {mistake.backend}, {1, ""});
    const BackendSet honest(faulty::keeping_backends(), {"honest_keeper"}, {1, ""});
    int found = 0;
    std::size_t shortest = 100;
    for (int seed = 0; seed < 60; ++seed) {
      const Case source = case_from_line("heads=2 seq=3x5 dim=4 seed=" + std::to_string(seed));
      const Verdict verdict = check_line(source, *wrong.all().front(), 1);
      EXPECT_EQ(check_line(source, *honest.all().front(), 1).status, Status::pass);
      if (verdict.status == Status::pass) continue;
      ++found;
      EXPECT_TRUE(state_steps(source.problem).life) << verdict.reason;
      EXPECT_EQ(verdict.cause.kind, Cause::among_steps) << verdict.reason;
      EXPECT_NE(verdict.reason.find("seed "), std::string::npos) << verdict.reason;
      EXPECT_NE(verdict.repro.find("--steps '" + verdict.steps + "'"), std::string::npos) << verdict.repro;
      shortest = std::min(shortest, steps_from_text(verdict.steps).size());
    }
    EXPECT_GT(found, 2);
    EXPECT_LE(shortest, steps_from_text(mistake.steps).size());
    // The steps that a failure printed repeat it, in any case.
    const Case any = case_from_line("seq=2x3 dim=2");
    EXPECT_EQ(check_line(any, *honest.all().front(), 1, steps_from_text(mistake.steps)).status, Status::pass);
    if (std::string(mistake.backend) == "sample_of_values") continue;  // another element is changed there
    EXPECT_EQ(check_line(any, *wrong.all().front(), 1, steps_from_text(mistake.steps)).status, Status::fail);
  }
}

TEST(PlanLife, ShrinkingKeepsTheSteps) {
  const BackendSet wrong(faulty::keeping_backends(), {"third_run"}, {1, ""});
  for (int seed = 0;; ++seed) {
    ASSERT_LT(seed, 100);
    const Case source = case_from_line("batch=2 heads=2 seq=3x5 dim=4 softcap=3 seed=" + std::to_string(seed));
    const Verdict verdict = check_line(source, *wrong.all().front(), 1);
    if (verdict.steps.empty()) continue;
    const ShrunkCase small =
        shrink_case(source, *wrong.all().front(), 1, 60, {.steps = steps_from_text(verdict.steps)});
    EXPECT_EQ(small.source.label, "seq=1 dim=1 fill=constant(1)");
    EXPECT_EQ(small.verdict.steps, "1:prepare 1:upload 1:run 1:run 1:run 1:download");
    return;
  }
}

TEST(PlanLife, TheShortestSequenceLacksNoStep) {
  const auto fails = [](const PlanSteps& steps) {
    int runs = 0;
    for (const PlanStep& step : steps) runs += step == PlanStep{2, PlanAct::run};
    return runs >= 2;
  };
  std::uint64_t seed = 0;
  while (!fails(draw_steps(seed))) ++seed;
  const PlanSteps steps = shortest_steps(draw_steps(seed), fails, [] { return true; });
  EXPECT_TRUE(fails(steps));
  EXPECT_EQ(steps.size(), 4u) << steps_text(steps);
}

}  // namespace
}  // namespace attest
