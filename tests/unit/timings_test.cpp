// Samples of a file put together for each backend and case.
#include "harness/page/timings.h"

#include <gtest/gtest.h>

#include <sstream>

namespace attest {
namespace {

std::vector<Timing> timings(const std::string& benchmarks) {
  std::istringstream file(R"({"context":{"roof_read_gbps":"27.5"},"benchmarks":[)" + benchmarks + "]}");
  const BenchmarkFile read = read_benchmark(file, "a file");
  EXPECT_EQ(read.number("roof_read_gbps"), 27.5);
  EXPECT_EQ(read.number("absent"), 0);
  return timings_of(read);
}

std::string sample(const std::string& line, double ms, const std::string& more = "") {
  std::ostringstream text;
  text << R"({"name":"eigen/x","label":")" << line << R"(","time_unit":"ms","real_time":)" << ms << more << "}";
  return text.str();
}

TEST(Timings, AreMediansInMilliseconds) {
  const std::string one = "dtype=f64 heads=2 seq=3x5 dim=16/8";
  const auto list = timings(sample(one, 1, R"(,"upload_seconds":0.5,"GFLOP/s":4)") + "," + sample(one, 9) + "," +
                            sample(one, 2, R"(,"upload_seconds":0.25,"GFLOP/s":2)") + "," + sample("a.safetensors", 7));
  ASSERT_EQ(list.size(), 2u);
  const Timing& t = list.front();
  EXPECT_EQ(t.run, 2);
  EXPECT_EQ(t.upload, 375);
  EXPECT_EQ(t.gflops, 3);
  EXPECT_FALSE(t.total) << "the file doesn't say";
  EXPECT_FALSE(t.median_ulps || t.largest_ulps) << "an older file doesn't either";
  EXPECT_EQ(t.dtype, "f64");
  EXPECT_EQ(t.key_length, 5);
  EXPECT_EQ(t.head_dim, 16);
  EXPECT_EQ(t.but_length, "dtype=f64 heads=2 dim=16/8");
  EXPECT_EQ(list.back().key_length, 0) << "a file is no line";
}

TEST(Timings, HaveTheErrorsOfTheCheck) {
  const auto list = timings(sample("seq=4 dim=8", 1, R"(,"median_ulps":0.25,"largest_ulps":3)") + "," +
                            sample("seq=4 dim=8", 2, R"(,"median_ulps":0.25,"largest_ulps":3)"));
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list.front().median_ulps, 0.25);
  EXPECT_EQ(list.front().largest_ulps, 3);
}

TEST(Timings, AWordOfALineIsLeftOut) {
  EXPECT_EQ(without("seq=4 dim=8", "seq"), "dim=8");
  EXPECT_EQ(without("seq=4 dim=8", "dim"), "seq=4");
  EXPECT_EQ(without("seq=4 dim=8", "im"), "seq=4 dim=8");
  EXPECT_EQ(without("seq=4", "seq"), "");
}

}  // namespace
}  // namespace attest
