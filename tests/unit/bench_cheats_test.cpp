// No cheat gets a speed, each for its own reason; and honest backends keep theirs.
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "harness/speed/timing/bench.h"
#include "tests/faulty/cheats/cheats.h"
#include "tests/faulty/faulty.h"
#include "tests/unit/helpers.h"

namespace attest {
namespace {

constexpr const char* kLine = "heads=2 seq=128 dim=32";

/// One backend on one case, in few short samples.
BenchLine bench_alone(Backend* backend, const std::string& line, std::uint64_t seed) {
  static const Roof roof = measure_roof(1);
  const BenchSettings settings{1, 4, 0.02, seed};
  return bench_case(case_from_line(line), {backend}, roof, settings).lines.at(0);
}

class Cheats : public testing::TestWithParam<std::string> {};

TEST_P(Cheats, GetNoSpeedForTheRightReason) {
  const BackendSet set(faulty::cheating_backends(), {GetParam()}, {1, ""});
  for (const std::uint64_t seed : {1u, 2u}) {
    BenchLine line = bench_alone(set.all().front(), kLine, seed);
    // Some give themselves away by what they cost, which a neighbour may hide: its samples are marked as disturbed.
    for (std::uint64_t again = 1; again <= 4 && line.wrong.empty() && line.samples_disturbed > 0; ++again) {
      line = bench_alone(set.all().front(), kLine, seed + 10 * again);
    }
    EXPECT_EQ(line.wrong.kind, faulty::reason_for_cheat(GetParam())) << line.wrong.text;
  }
}

/// What a cheat does to the process is no neighbour's fault.
TEST(Bench, ACheatTakesNobodyElsesSpeed) {
  const BackendSet honest(faulty::faulty_backends(), {"correct"}, {1, ""});
  for (const char* cheat : {"rounds_up", "flushes_to_zero", "rounds_up_in_download", "changes_its_input",
                            "zeroes_its_values", "never_rests"}) {
    const BackendSet set(faulty::cheating_backends(), {cheat}, {1, ""});
    const BenchSettings settings{1, 4, 0.002, 5};
    const BenchCase result =
        bench_case(case_from_line(kLine), {set.all().front(), honest.all().front()}, {100, 50, 10, 2}, settings);
    EXPECT_FALSE(result.lines.at(0).wrong.empty()) << cheat;
    EXPECT_EQ(result.lines.at(1).wrong.text, "") << cheat;
  }
}

std::vector<std::string> names_of_cheats() {
  std::vector<std::string> names;
  for (const BackendEntry& entry : faulty::cheating_backends()) names.emplace_back(entry.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Bench, Cheats, testing::ValuesIn(names_of_cheats()),
                         [](const auto& one) { return one.param; });

TEST(Bench, TheSameLoopsWithoutACheatKeepTheirSpeed) {
  const BackendSet set(faulty::faulty_backends(), {"correct"}, {1, ""});
  for (const char* line :
       {kLine, "seq=1 dim=1", "seq=0x5 dim=8", "seq=5x1 dim=2", "heads=2 seq=9 dim=8 fill=onehot",
        "heads=2/1 seq=16 dim=8 k.strides=0,0,8,1 mask=bool:BHQK:random(0.5)", "dtype=f64 seq=33 dim=8"}) {
    const BenchLine result = bench_alone(set.all().front(), line, 3);
    EXPECT_EQ(result.wrong.text, "") << line;
    EXPECT_GE(result.seconds.size(), 2u) << line;
  }
}

TEST(Bench, EveryBackendOfThisBuildKeepsItsSpeed) {
  // As many threads as an OpenCL device's pool may have: other tests of this program have made it before.
  const int threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const BackendSet set(registered_backends(), {}, {threads, ""});
  const Roof roof = measure_roof(threads);
  const Case one = case_from_line("heads=2 seq=64 dim=16 causal dropout=0.1");
  const BenchCase result = bench_case(one, set.all(), roof, {threads, 3, 0.01, 4});
  for (const BenchLine& line : result.lines) EXPECT_EQ(line.wrong.text, "") << line.backend;
}

}  // namespace
}  // namespace attest
