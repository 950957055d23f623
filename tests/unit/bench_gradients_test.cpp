// Benchmarks of gradients: honest backends get a speed, and no cheat that keeps something of the first run does.
#include <gtest/gtest.h>

#include "harness/speed/timing/bench.h"
#include "tests/faulty/cheats/gradient_cheats.h"
#include "tests/faulty/faulty.h"
#include "tests/unit/helpers.h"

namespace attest {
namespace {

const Roof kRoof = {100, 50, 10, 2};

BenchLine bench_alone(Backend* backend, const std::string& line, std::uint64_t seed) {
  return bench_case(case_from_line(line), {backend}, kRoof, {1, 4, 0.004, seed}).lines.at(0);
}

TEST(BenchGradients, ACheatGetsNoSpeed) {
  for (const BackendEntry& entry : faulty::gradient_cheats()) {
    const BackendSet set(faulty::gradient_cheats(), {std::string(entry.name)}, {1, ""});
    for (const std::uint64_t seed : {1u, 2u, 3u}) {
      const BenchLine line = bench_alone(set.all().front(), "pass=backward heads=2 seq=48 dim=16", seed);
      EXPECT_EQ(line.wrong.kind, faulty::reason_for_gradient_cheat(entry.name))
          << entry.name << ": " << line.wrong.text;
    }
  }
}

TEST(BenchGradients, RightOnesKeepTheirSpeed) {
  const BackendSet set(registered_backends(), {"example"}, {1, ""});
  for (const char* line :
       {"pass=backward heads=4/2 seq=33x65 dim=16 causal align=bottom-right",
        "pass=both heads=2 seq=20 dim=8 out=o,lse,dq,dk,dv dlse",
        "pass=backward batch=2 seq=9 dim=8 mask=add:11QK:normal sinks softcap=3 out=dq,dk,dv,dmask,dsinks",
        "pass=backward batch=2 heads=2 seq=20 dim=8 lengths=20,9 layout=thd", "pass=backward dtype=f64 seq=17 dim=5",
        "pass=backward dtype=bf16 heads=2 seq=24 dim=16", "pass=backward seq=6x20 dim=8 past=14",
        "pass=backward heads=4/2 seq=8 dim=4 v.strides=0,0,1,1 k.strides=0,0,4,1", "pass=backward seq=1 dim=1",
        "pass=backward seq=0x5 dim=8",
        "op=gated_delta pass=backward heads=4/2 seq=20 dim=8/6 state dpresent out=dq,dk,dv,ddecay,dbeta,dstate",
        "op=linear pass=both heads=2 seq=12 dim=8 out=o,dq,dk,dv",
        "pass=backward seq=12 dim=8 poison=hidden:do lengths=q:7/k:12 dropout=0.2"}) {
    const BenchLine result = bench_alone(set.all().front(), line, 3);
    EXPECT_EQ(result.wrong.text, "") << line;
    EXPECT_GE(result.seconds.size(), 2u) << line;
  }
}

TEST(BenchGradients, CountFiveProductsOfAVisiblePair) {
  const BackendSet set(registered_backends(), {"example"}, {1, ""});
  const auto operations = [&](const char* line) {
    const BenchLine timed = bench_alone(set.all().front(), line, 3);
    return timed.gflops * timed.median() * 1e9;
  };
  EXPECT_NEAR(operations("heads=3 seq=8 dim=6/4"), 3 * 64 * 2 * (6 + 4), 1e-3);
  EXPECT_NEAR(operations("pass=backward heads=3 seq=8 dim=6/4"), 3 * 64 * 2 * (3 * 6 + 2 * 4), 1e-3);
  EXPECT_NEAR(operations("pass=both heads=3 seq=8 dim=6/4"), 3 * 64 * 2 * (4 * 6 + 3 * 4), 1e-3);
}

TEST(BenchGradients, CountWhatIsReadAndWrittenOnce) {
  const BackendSet set(registered_backends(), {"example"}, {1, ""});
  const BenchLine timed = bench_alone(set.all().front(), "pass=backward heads=2/1 seq=8x12 dim=6/4 dlse", 3);
  const double q = 2 * 8 * 6, k = 12 * 6, v = 12 * 4, o = 2 * 8 * 4, row = 2 * 8;
  EXPECT_NEAR(timed.gbps * timed.median() * 1e9, 4 * ((q + k + v + o + row + o + row) + (q + k + v)), 1e-3);
}

}  // namespace
}  // namespace attest
