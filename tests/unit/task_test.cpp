#include "harness/judge/task.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "harness/base/user_error.h"
#include "harness/cases/case.h"

namespace attest {
namespace {

std::set<std::string> lines_of(const std::string& pattern, int count = 400) {
  std::mt19937_64 random(5);
  std::set<std::string> lines;
  for (int n = 0; n < count; ++n) lines.insert(drawn_line(pattern, random));
  return lines;
}

TEST(Task, AlternativesAndRangesAreDrawn) {
  EXPECT_EQ(lines_of("heads=2|4 seq=4 dim=8 causal|-"),
            (std::set<std::string>{"heads=2 seq=4 dim=8 causal", "heads=2 seq=4 dim=8", "heads=4 seq=4 dim=8 causal",
                                   "heads=4 seq=4 dim=8"}));
  EXPECT_EQ(lines_of("seq=3..5 dim=1"), (std::set<std::string>{"seq=3 dim=1", "seq=4 dim=1", "seq=5 dim=1"}));
  const std::set<std::string> both = lines_of("seq=1..2x7..9");
  EXPECT_EQ(both.size(), 6u);
  EXPECT_TRUE(both.contains("seq=2x9"));
  for (const std::string& line : lines_of("scale=0.25..0.5")) {
    const double value = std::stod(line.substr(6));
    EXPECT_GE(value, 0.25) << line;
    EXPECT_LE(value, 0.5) << line;
  }
}

TEST(Task, EndsOfARangeAreDrawnOftenAndSmallNumbersAsOftenAsLargeOnes) {
  std::mt19937_64 random(6);
  int ends = 0, small = 0;
  for (int n = 0; n < 600; ++n) {
    const std::string line = drawn_line("seq=1..1000", random);
    ends += line == "seq=1" || line == "seq=1000" ? 1 : 0;
    small += line.size() < 7 ? 1 : 0;  // below 100
  }
  EXPECT_GT(ends, 60);
  EXPECT_GT(small, 250);
  EXPECT_LT(small, 500);
}

TEST(Task, EdgesOfTilesAreDrawnOften) {
  std::mt19937_64 random(9);
  int edges = 0;
  constexpr int kLines = 600;
  for (int n = 0; n < kLines; ++n) {
    const int size = std::stoi(drawn_line("seq=300..1000", random).substr(4));
    EXPECT_GE(size, 300);
    EXPECT_LE(size, 1000);
    edges += size % 64 == 0 || size % 64 == 1 || size % 64 == 63 ? 1 : 0;
  }
  // By chance alone one of 21 is.
  EXPECT_GT(edges, kLines / 8);
  for (const std::string& line : lines_of("seq=65..66")) EXPECT_TRUE(line == "seq=65" || line == "seq=66") << line;
  EXPECT_EQ(lines_of("seq=0..0"), std::set<std::string>{"seq=0"});
}

TEST(Task, TheSameSeedDrawsTheSame) {
  std::mt19937_64 one(7), same(7), other(8);
  const std::string pattern = "batch=1..900 seq=1..900 dim=1..900";
  const std::string line = drawn_line(pattern, one);
  EXPECT_EQ(line, drawn_line(pattern, same));
  EXPECT_NE(line, drawn_line(pattern, other));
}

class TaskFile : public testing::Test {
 protected:
  ~TaskFile() override { std::filesystem::remove(path_); }
  Task read(const std::string& text) const {
    std::ofstream(path_) << text;
    return read_task(path_);
  }
  std::string complaint_of(const std::string& text) const {
    try {
      read(text);
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  }
  const std::string path_ = std::filesystem::temp_directory_path() / ("attest_" + std::to_string(getpid()) + ".task");
};

TEST_F(TaskFile, HasLinesOfFiveKinds) {
  const Task task = read(
      "# comment\nabout a task\ndraw 3 seq=1..4 dim=4  # small\ntime 0.5 seq=64 dim=8\nmay refuse\n"
      "declare exp_ulps=4 lse_base=2\n");
  EXPECT_EQ(task.about, "a task");
  ASSERT_EQ(task.drawn.size(), 1u);
  EXPECT_EQ(task.drawn[0].count, 3);
  EXPECT_EQ(task.drawn[0].pattern, "seq=1..4 dim=4");
  ASSERT_EQ(task.timed.size(), 1u);
  EXPECT_EQ(task.timed[0].weight, 0.5);
  EXPECT_TRUE(task.may_refuse);
  Arithmetic stated;
  stated.exp_ulps = 4;
  EXPECT_EQ(task.permitted.excess(stated, Call()), "");
  stated.exp_ulps = 5;
  EXPECT_NE(task.permitted.excess(stated, Call()), "");
}

TEST_F(TaskFile, FaultsAreToldWithTheirLine) {
  const std::pair<const char*, const char*> faults[] = {
      {"draw 1 seq=4 dim=4\nrun 2 seq=4\n", ":2: \"run\": about, draw, time, may, call or declare is wanted"},
      {"draw x seq=4\n", ":1: \"x\" is no number"},
      {"draw 0 seq=4\n", ":1: draw: 0 is not above 0"},
      {"draw 1 seq=4..2\n", ":1: the range 4..2 is empty"},
      {"draw 1 seq=4 dim=-3\n", ":1: "},
      {"about x\ndeclare\n", ":2: declare: what may be stated is wanted"},
      {"declare colour=red\n", ":1: declare: \"colour\" is nothing that a backend states"},
      {"declare stored_weights=blue\n", ":1: declare: \"blue\" is no value of stored_weights"},
      {"draw 1 seq=4 colour=1\n", ":1: "},
      {"may cheat\n", ":1: may: \"refuse\" is wanted"},
      {"time 1 seq=4 dim=4\n", "nothing is drawn"}};
  for (const auto& [text, complaint] : faults) {
    EXPECT_NE(complaint_of(text).find(complaint), std::string::npos) << text << complaint_of(text);
  }
}

TEST(Task, ThoseOfAttestCanBeRead) {
  for (const char* name :
       {"decode", "prefill", "grouped", "window", "paged", "ragged", "latent", "quantised", "merge", "backward"}) {
    const Task task = read_task(name);
    EXPECT_EQ(task.name, name);
    EXPECT_FALSE(task.about.empty());
    EXPECT_GE(task.drawn.size(), 3u);
    EXPECT_GE(task.timed.size(), 2u);
  }
  EXPECT_THROW(read_task("nobody"), UserError);
}

}  // namespace
}  // namespace attest
