// The cheats of the benchmark as a plug-in: no speed, for the same reasons as in the tree.
#include <gtest/gtest.h>

#include "harness/backends/plugin/plugin_library.h"
#include "harness/speed/timing/bench.h"
#include "tests/faulty/cheats/cheats.h"
#include "tests/unit/helpers.h"

namespace attest {
namespace {

BenchLine bench_outside(const std::string& name, std::uint64_t seed) {
  static const Roof roof = measure_roof(1);
  const auto plugin = load_plugin(ATTEST_PLUGIN_FOLDER "/libfaulty_plugin.so");
  const auto backend = make_plugin_backend(plugin, name, {1, ""});
  const BenchSettings settings{1, 4, 0.02, seed};
  return bench_case(case_from_line("heads=2 seq=128 dim=32"), {backend.get()}, roof, settings).lines.at(0);
}

TEST(PluginCheats, GetNoSpeedForTheRightReason) {
  int caught = 0;
  for (const BackendEntry& entry : faulty::cheating_backends()) {
    const std::string name(entry.name);
    // A library that brings a copy of attest's reference along asks that one, which nobody here can see.
    if (name == "calls_the_reference") continue;
    BenchLine line = bench_outside(name, 1);
    for (std::uint64_t again = 1; again <= 4 && line.wrong.empty() && line.samples_disturbed > 0; ++again) {
      line = bench_outside(name, 1 + 10 * again);
    }
    EXPECT_EQ(line.wrong.kind, faulty::reason_for_cheat(name)) << name << ": " << line.wrong.text;
    ++caught;
  }
  EXPECT_GE(caught, 20);
}

TEST(PluginCheats, TheSameLoopsWithoutACheatKeepTheirSpeed) {
  const BenchLine line = bench_outside("correct", 3);
  EXPECT_EQ(line.wrong.text, "");
  EXPECT_GE(line.seconds.size(), 2u);
}

}  // namespace
}  // namespace attest
