// The file of a benchmark: its context is that of the run at hand, and each sample tells what the table does.
#include "harness/speed/write_benchmark.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "tests/faulty/faulty.h"
#include "tests/unit/helpers.h"

namespace attest {
namespace {

/// What is written about one case, timed on a correct backend.
nlohmann::json written(const std::string& command) {
  const BackendSet set(faulty::faulty_backends(), {"correct"}, {1, ""});
  const BenchSettings settings{1, 3, 0.001, 9};
  const BenchmarkContext context{{100, 50, 10, 2}, settings, {command}, {}};
  std::ostringstream file;
  write_benchmark(file, {bench_case(case_from_line("seq=16 dim=8"), set.all(), context.roof, settings)}, context);
  return nlohmann::json::parse(file.str());
}

TEST(WriteBenchmark, EachFileHasItsOwnContext) {
  EXPECT_EQ(written("first")["context"]["command"], "first");
  const nlohmann::json second = written("a \"second\"\n");
  EXPECT_EQ(second["context"]["command"], "a \"second\"\n");
  EXPECT_TRUE(second["context"].contains("date")) << "what Google Benchmark says is there, too";
}

TEST(WriteBenchmark, SamplesTellWhatTheTableDoes) {
  const nlohmann::json sample = written("bench")["benchmarks"].at(0);
  EXPECT_GT(sample["run_low_seconds"], 0);
  EXPECT_GE(sample["run_high_seconds"], sample["run_low_seconds"]);
  EXPECT_NEAR(sample["run_confidence"], 0.75, 1e-9);  // of three
  EXPECT_GT(sample["roof_after_gflops"], 0);
  EXPECT_GE(sample["calibration_spread"], 0);
  EXPECT_GE(sample["median_ulps"], 0);
  EXPECT_GT(sample["largest_ulps"], sample["median_ulps"]);
}

TEST(WriteBenchmark, WhatClocksCanNotTellIsNotThere) {
  const nlohmann::json sample = written("bench")["benchmarks"].at(0);
  EXPECT_GE(sample["cpu_after_seconds"], 0);
  EXPECT_FALSE(sample.contains("other_processors")) << "a sample of a millisecond";
  EXPECT_FALSE(sample.contains("steal_processors"));
  EXPECT_TRUE(sample.contains("load"));
}

}  // namespace
}  // namespace attest
