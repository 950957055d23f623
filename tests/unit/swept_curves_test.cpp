// Sweeps as benchmark files hold them.
#include "harness/speed/files/swept_curves.h"

#include <gtest/gtest.h>

#include <sstream>

#include "harness/speed/files/benchmark_file.h"
#include "harness/speed/studies/sweep.h"
#include "harness/speed/timing/bench.h"
#include "tests/unit/complaint.h"

namespace attest {
namespace {

BenchCase timed(const std::string& line, double seconds, NoSpeed wrong = NoSpeed::none) {
  BenchCase one;
  one.case_line = line;
  BenchLine result;
  result.backend = "a";
  result.seconds = {seconds};
  result.wrong.kind = wrong;
  one.lines.push_back(result);
  return one;
}

/// Time grows with the square along one line; along the other all but one point has no speed.
SweptCurves two_curves() {
  const Sweep sweep = parse_sweep("seq=16..64");
  return swept_curves(sweep, {"dim=8", "dim=4 seq=7"},
                      {timed("seq=16 dim=8", 1), timed("seq=32 dim=8", 4), timed("seq=64 dim=8", 16),
                       timed("seq=16 dim=4", 1), timed("seq=32 dim=4", 1, NoSpeed::refused)});
}

TEST(SweptCurves, SamplesAreFoundByTheirLabels) {
  const SweptCurves sweep = two_curves();
  EXPECT_EQ(sweep.key, "seq");
  EXPECT_EQ(sweep.values, (std::vector<long>{16, 32, 64}));
  ASSERT_EQ(sweep.curves.size(), 2u);
  EXPECT_EQ(sweep.curves[0].line, "dim=8");
  EXPECT_EQ(sweep.curves[0].cases, (std::vector<std::string>{"seq=16 dim=8", "seq=32 dim=8", "seq=64 dim=8"}));
  const Growth& growth = sweep.curves[0].growth.at("a");
  EXPECT_NEAR(growth.exponent, 2, 1e-12);
  EXPECT_NEAR(growth.last, 2, 1e-12);
  EXPECT_EQ(growth.from, 16);
  EXPECT_EQ(growth.to, 64);
  EXPECT_EQ(sweep.curves[1].cases.front(), "seq=16 dim=4");
  EXPECT_TRUE(sweep.curves[1].growth.empty()) << "one point grows nowhere";
}

TEST(SweptCurves, WhatIsWrittenIsReadBack) {
  const SweptCurves sweep = two_curves();
  EXPECT_EQ(to_json(swept_curves_from_json(to_json(sweep), "a file")), to_json(sweep));
  std::istringstream file(R"({"context":{"schema":"3","sweep":)" + to_json(sweep).dump() +
                          R"(},"benchmarks":[{"name":"a/x","label":"seq=16 dim=8","real_time":1}]})");
  const BenchmarkFile read = read_benchmark(file, "a file");
  ASSERT_TRUE(read.sweep);
  EXPECT_EQ(to_json(*read.sweep), to_json(sweep));
}

TEST(SweptCurves, WhatIsNoSweepIsOneLine) {
  const auto says = [](const auto& change) {
    nlohmann::ordered_json json = to_json(two_curves());
    change(json);
    return complaint([&] { swept_curves_from_json(json, "a file"); });
  };
  EXPECT_EQ(says([](auto& json) { json = 7; }), "a file: the sweep is no object");
  EXPECT_EQ(says([](auto& json) {
              json["values"] = {16, 8, 64};
            }),
            "a file: the sweep has values that do not rise from 1");
  EXPECT_EQ(says([](auto& json) {
              json["values"] = {0, 8, 64};
            }),
            "a file: the sweep has values that do not rise from 1");
  EXPECT_EQ(says([](auto& json) { json["curves"][1]["cases"] = {"x"}; }),
            "a file: the sweep: number 2 of \"curves\" has not a case for each value");
  EXPECT_EQ(says([](auto& json) { json["curves"][0]["growth"]["a"]["to"] = 1; }),
            "a file: the sweep: number 1 of \"curves\": the growth of a has sizes that do not rise");
  EXPECT_EQ(says([](auto& json) { json["curves"][0]["growth"]["a\n"] = 1; }),
            "a file: the sweep: number 1 of \"curves\": the growth of a\\x0a is no object");
}

}  // namespace
}  // namespace attest
