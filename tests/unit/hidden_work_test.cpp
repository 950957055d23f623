// Cheats that do all of the work where nobody looks get no speed, or none that is better than their work; each honest
// twin keeps its own.
#include "tests/faulty/cheats/hidden_work.h"

#include <gtest/gtest.h>

#include "harness/base/statistics.h"
#include "harness/speed/timing/bench.h"
#include "tests/unit/helpers.h"

namespace attest {
namespace {

BenchLine bench_alone(const std::string& name, const std::string& line, double seconds, std::uint64_t seed) {
  static const Roof roof = measure_roof(1);
  const BackendSet set(faulty::hidden_work_backends(), {name}, {1, ""});
  return bench_case(case_from_line(line), {set.all().front()}, roof, {1, 4, seconds, seed}).lines.at(0);
}

bool uses_helpers(const std::string& name) { return name.starts_with("thread") || name.starts_with("child"); }

std::vector<std::string> names_of(bool helpers) {
  std::vector<std::string> list;
  for (const BackendEntry& entry : faulty::hidden_work_backends()) {
    if (uses_helpers(std::string(entry.name)) == helpers) list.emplace_back(entry.name);
  }
  return list;
}

class HiddenWork : public testing::TestWithParam<std::string> {};

TEST_P(HiddenWork, EarnsNoSpeedAndAnHonestTwinKeepsItsOwn) {
  for (const char* line : {"seq=64 dim=32", "heads=2 seq=128 dim=32"}) {
    faulty::shortest_computation();
    const BenchLine result = bench_alone(GetParam(), line, 0.02, 1);
    const double worked = faulty::shortest_computation();
    const bool earned = result.wrong.empty() && result.ranked_seconds() > 0.5 * worked;
    EXPECT_TRUE(earned || (!faulty::is_honest_twin(GetParam()) && !result.wrong.empty()))
        << line << ": ranked by " << result.ranked_seconds() * 1e6 << " us, worked " << worked * 1e6 << " us. "
        << result.wrong.text;
  }
}

INSTANTIATE_TEST_SUITE_P(Bench, HiddenWork, testing::ValuesIn(names_of(false)),
                         [](const auto& one) { return one.param; });

class HiddenHelpers : public testing::TestWithParam<std::string> {};

TEST_P(HiddenHelpers, AreCountedAndCostTheSpeedWhereTheyHelped) {
  // Neighbours may take the processors that helpers want. What they got is seen in any case, but not of the same runs:
  // a load that changes may part the two, though not each time.
  constexpr int kTries = 6, kWanted = 2;
  int agreed = 0;
  for (int n = 1; n <= kTries && agreed < kWanted; ++n) {
    faulty::processors_taken();
    const BenchLine result = bench_alone(GetParam(), "heads=4 seq=192 dim=32", 0.06, static_cast<std::uint64_t>(n));
    const double taken = faulty::processors_taken(), seen = mean(result.steps.processors);
    // Starting a process counts as well.
    agreed += seen > 0.75 * taken && seen < 1.3 * taken + 0.3;
    if (faulty::is_honest_twin(GetParam())) {
      EXPECT_EQ(result.wrong.text, "") << taken << " processors were taken";
    } else if (taken > 1.4) {
      EXPECT_EQ(result.wrong.kind, NoSpeed::more_threads) << taken << " processors were taken. " << result.wrong.text;
    }
  }
  EXPECT_EQ(agreed, kWanted);
}

INSTANTIATE_TEST_SUITE_P(Bench, HiddenHelpers, testing::ValuesIn(names_of(true)),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace attest
