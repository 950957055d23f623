// A folder of benchmark files as series with levels.
#include "harness/page/history.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "harness/base/user_error.h"
#include "tests/unit/scratch_folder.h"

namespace attest {
namespace {

void write_file(const fs::path& path, int day, double ms, const std::string& cpu = "a cpu") {
  std::ostringstream date;
  date << "2026-01-" << (day < 10 ? "0" : "") << day;
  std::ofstream(path) << R"({"context":{"cpu":")" << cpu << R"(","threads":"2","commit":"c)" << day << R"(","date":")"
                      << date.str()
                      << R"("},"benchmarks":[{"name":"eigen/x","label":"seq=4 dim=4","time_unit":"ms","real_time":)"
                      << ms << R"(},{"name":"eigen/x","label":"seq=4 dim=4","time_unit":"ms","real_time":)" << 1.02 * ms
                      << "}]}";
}

TEST(History, FindsTheCommitWhereACaseMoved) {
  const Folder folder;
  // Names in another order than dates: dates count.
  for (int day = 1; day <= 24; ++day) {
    const double noise = 1 + 0.002 * ((day * 7) % 5);
    write_file(folder / (std::to_string(100 - day) + ".json").c_str(), day, (day < 15 ? 10 : 12) * noise);
  }
  const History history = read_history(folder / "");
  ASSERT_EQ(history.runs.size(), 24u);
  EXPECT_EQ(history.runs.front().commit, "c1");
  ASSERT_EQ(history.series.size(), 1u);
  const HistorySeries& series = history.series.front();
  ASSERT_EQ(series.levels.size(), 2u);
  EXPECT_EQ(history.runs[series.points[series.levels[1].first].run].commit, "c15");
  EXPECT_NEAR(series.levels[1].middle / series.levels[0].middle, 1.2, 0.01);
  const HistoryLevel& level = series.levels.front();
  for (std::size_t n = level.first; n <= level.last; ++n) {
    EXPECT_GE(series.points[n].median, level.low);
    EXPECT_LE(series.points[n].median, level.high);
  }
  EXPECT_LT(level.high, 11) << "the band is that of the level alone";
  EXPECT_LE(series.points[0].low, series.points[0].median);
}

TEST(History, WhatHasNoPlaceInItIsOneLine) {
  const Folder folder;
  EXPECT_NE(message_of<UserError>([&] { read_history(folder / ""); }), "");
  EXPECT_NE(message_of<UserError>([&] { read_history(folder / "absent"); }), "");
  write_file(folder / "a.json", 1, 5);
  write_file(folder / "b.json", 2, 5, "another cpu");
  EXPECT_NE(message_of<UserError>([&] { read_history(folder / ""); }).find("a.json"), std::string::npos);
  std::ofstream(folder / "b.json") << R"({"context":{"cpu":"a cpu"},"benchmarks":[{"name":"a/x","real_time":1}]})";
  EXPECT_NE(message_of<UserError>([&] { read_history(folder / ""); }), "");
}

}  // namespace
}  // namespace attest
