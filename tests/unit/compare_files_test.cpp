// Two benchmarks, or two folders of benchmarks measured in turn.
#include "harness/speed/files/compare_files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "harness/base/user_error.h"

namespace attest {
namespace {

namespace fs = std::filesystem;

class CompareFiles : public testing::Test {
 protected:
  CompareFiles() : folder_(fs::path(testing::TempDir()) / ("compare_files." + std::to_string(getpid()))) {
    fs::create_directories(folder_ / "before");
    fs::create_directories(folder_ / "now");
  }
  ~CompareFiles() override { fs::remove_all(folder_); }
  /// Nine samples around `milliseconds` of each of the backends.
  fs::path write(const fs::path& name, double milliseconds, const std::vector<std::string>& backends,
                 const std::string& context = "", bool disturbed = false) {
    std::ofstream file(folder_ / name);
    file << "{\"context\":{" << context << "},\"benchmarks\":[";
    for (std::size_t b = 0; b < backends.size(); ++b) {
      for (int n = 0; n < 9; ++n) {
        file << (b + static_cast<std::size_t>(n) > 0 ? "," : "") << R"({"name":")" << backends[b]
             << R"(/run","label":"seq=4 dim=4","time_unit":"ms","real_time":)" << milliseconds * (1 + 0.001 * n)
             << R"(,"disturbed":)" << disturbed << "}";
      }
    }
    file << "]}";
    return folder_ / name;
  }
  fs::path folder_;
};

TEST_F(CompareFiles, WhatBothHaveIsCompared) {
  const SpeedComparison c =
      compare_files(write("a.json", 10, {"eigen", "gone"}), write("b.json", 20, {"eigen", "fresh"}), 0.95);
  EXPECT_FALSE(c.paired);
  ASSERT_EQ(c.cases.size(), 1u);
  const auto& [key, one] = *c.cases.begin();
  EXPECT_EQ(key, "eigen     seq=4 dim=4");
  EXPECT_EQ(one.before, 9u);
  EXPECT_EQ(one.now, 9u);
  EXPECT_GT(one.interval.low, 1.9);
  EXPECT_LT(one.interval.high, 2.1);
  EXPECT_EQ(c.only_before, (std::vector<std::string>{"gone      seq=4 dim=4"}));
  EXPECT_EQ(c.only_now, (std::vector<std::string>{"fresh     seq=4 dim=4"}));
  EXPECT_TRUE(c.unlike.empty());
}

TEST_F(CompareFiles, WhatWasNotMeasuredAlikeIsTold) {
  const fs::path a = write("a.json", 10, {"eigen"}, R"("cpu":"A","threads":"2")");
  const fs::path b = write("b.json", 10, {"eigen"}, R"("cpu":"B","threads":"2","interrupted":"true")");
  const fs::path older = write("older.json", 10, {"eigen"});
  EXPECT_EQ(compare_files(a, b, 0.95).unlike, (std::vector<std::string>{"cpu A and B", "interrupted false and true"}));
  EXPECT_TRUE(compare_files(a, a, 0.95).unlike.empty());
  EXPECT_TRUE(compare_files(a, older, 0.95).unlike.empty()) << "an older file says nothing";
}

TEST_F(CompareFiles, WhoWasTimedFromElsewhereIsTold) {
  const fs::path apart = write("a.json", 10, {"mine", "eigen"}, R"("timed_apart":"mine")");
  const fs::path here = write("b.json", 10, {"mine", "eigen"}, R"("timed_apart":"")");
  const fs::path older = write("older.json", 10, {"mine", "eigen"});
  const std::vector<std::string> told = {"mine timed apart in one of them, its run with upload and download in it"};
  EXPECT_EQ(compare_files(apart, here, 0.95).unlike, told);
  EXPECT_EQ(compare_files(here, apart, 0.95).unlike, told);
  EXPECT_TRUE(compare_files(apart, apart, 0.95).unlike.empty());
  EXPECT_TRUE(compare_files(apart, older, 0.95).unlike.empty()) << "an older file says nothing";
}

TEST_F(CompareFiles, FoldersArePairedByName) {
  for (int n = 0; n < 12; ++n) {
    // The machine grows slower all the time: pairs share it, samples of all rounds together would not.
    const std::string name = std::to_string(n) + ".json";
    write(fs::path("before") / name, 10 * (1 + n), {"eigen"});
    write(fs::path("now") / name, 10.1 * (1 + n), {"eigen"});
  }
  write(fs::path("now") / "alone.json", 1, {"eigen"});
  const SpeedComparison c = compare_files(folder_ / "before", folder_ / "now", 0.95);
  EXPECT_TRUE(c.paired);
  ASSERT_EQ(c.cases.size(), 1u);
  EXPECT_EQ(c.cases.begin()->second.before, 12u);
  EXPECT_NEAR(c.cases.begin()->second.interval.low, 1.01, 0.005);
  EXPECT_NEAR(c.cases.begin()->second.interval.high, 1.01, 0.005);
  EXPECT_EQ(c.unlike, (std::vector<std::string>{"files without a pair 0 and 1"}));
}

TEST_F(CompareFiles, DisturbedRoundsAreLeftOutUnlessMostAre) {
  for (int n = 0; n < 12; ++n) {
    const std::string name = std::to_string(n) + ".json";
    write(fs::path("before") / name, 10, {"eigen"});
    write(fs::path("now") / name, n < 4 ? 30 : 10, {"eigen"}, "", n < 4);
  }
  const ComparedCase few = compare_files(folder_ / "before", folder_ / "now", 0.9).cases.begin()->second;
  EXPECT_FALSE(few.disturbed);
  EXPECT_EQ(few.now, 8u);
  EXPECT_NEAR(few.interval.high, 1, 1e-9);
  for (int n = 4; n < 8; ++n) write(fs::path("now") / (std::to_string(n) + ".json"), 30, {"eigen"}, "", true);
  const ComparedCase most = compare_files(folder_ / "before", folder_ / "now", 0.9).cases.begin()->second;
  EXPECT_TRUE(most.disturbed);
  EXPECT_EQ(most.now, 12u);
}

TEST_F(CompareFiles, OneOfEachIsRefusedAndSoIsNothingInCommon) {
  const fs::path file = write("a.json", 10, {"eigen"});
  EXPECT_THROW(compare_files(file, folder_ / "now", 0.95), UserError);
  EXPECT_THROW(compare_files(folder_ / "before", folder_ / "now", 0.95), UserError);
}

}  // namespace
}  // namespace attest
