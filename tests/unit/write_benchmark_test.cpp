// The file of a benchmark: its context is that of the run at hand, and each sample tells what the table does.
#include "harness/speed/files/write_benchmark.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "harness/speed/files/benchmark_file.h"
#include "tests/faulty/faulty.h"
#include "tests/unit/helpers.h"

namespace attest {
namespace {

/// What is written about one case, timed on these backends.
nlohmann::json written(const std::string& command, const std::vector<std::string>& backends = {"correct"},
                       const std::string& line = "seq=16 dim=8") {
  const BackendSet set(faulty::faulty_backends(), backends, {1, ""});
  const BenchSettings settings{1, 3, 0.001, 9};
  const BenchmarkContext context{{100, 50, 10, 2}, settings, {command}, {}};
  std::ostringstream file;
  write_benchmark(file, {bench_case(case_from_line(line), set.all(), context.roof, settings)}, context);
  return nlohmann::json::parse(file.str());
}

TEST(WriteBenchmark, EachFileHasItsOwnContext) {
  EXPECT_EQ(written("first")["context"]["command"], "first");
  const nlohmann::json second = written("a \"second\"\n");
  EXPECT_EQ(second["context"]["command"], "'a \"second\"\n'");  // as a shell reads it
  EXPECT_TRUE(second["context"].contains("date")) << "what Google Benchmark says is there, too";
}

TEST(WriteBenchmark, SamplesTellWhatTheTableDoes) {
  const nlohmann::json file = written("bench"), sample = file["benchmarks"].at(0);
  std::istringstream text(file.dump());
  const Samples kept = read_samples(text, "file");
  ASSERT_EQ(kept.size(), 1u);
  const std::size_t samples = kept.begin()->second.size();
  EXPECT_GT(sample["run_low_seconds"], 0);
  EXPECT_GE(sample["run_high_seconds"], sample["run_low_seconds"]);
  EXPECT_GE(std::ranges::count(file["benchmarks"], "iteration", [](const auto& one) { return one["run_type"]; }), 3);
  EXPECT_GE(samples, 2u);  // those that were disturbed are in the file and don't count
  EXPECT_NEAR(sample["run_confidence"], 1 - std::exp2(1 - static_cast<double>(samples)), 1e-9);
  EXPECT_GT(sample["roof_after_gflops"], 0);
  EXPECT_GE(sample["calibration_spread"], 0);
  EXPECT_GE(sample["median_ulps"], 0);
  EXPECT_GT(sample["largest_ulps"], sample["median_ulps"]);
}

TEST(WriteBenchmark, WhatClocksCanNotTellIsNotThere) {
  const nlohmann::json all = written("bench")["benchmarks"];
  EXPECT_GE(all.at(0)["cpu_after_seconds"], 0);
  EXPECT_TRUE(all.at(0).contains("load"));
  // Samples of a millisecond. A busy machine may make one of them long.
  EXPECT_TRUE(std::ranges::any_of(all, [](const nlohmann::json& sample) {
    return sample["run_type"] == "iteration" && !sample.contains("other_processors") &&
           !sample.contains("steal_processors");
  }));
}

TEST(WriteBenchmark, WhoHasNoSpeedStandsInTheContext) {
  EXPECT_EQ(written("bench")["context"]["no_speed"], nlohmann::json::array());
  const nlohmann::json file = written("bench", {"correct", "softcap_dropped"}, "seq=16 dim=8 softcap=0.1");
  const nlohmann::json& list = file["context"]["no_speed"];
  ASSERT_EQ(list.size(), 1u) << list;
  EXPECT_EQ(list[0]["case"], "seq=16 dim=8 softcap=0.1");
  EXPECT_EQ(list[0]["backend"], "softcap_dropped");
  EXPECT_EQ(list[0]["cause"], "wrong_result");
  EXPECT_NE(list[0]["reason"], "");
}

}  // namespace
}  // namespace attest
