// Colours and progress where there is no terminal; tests/cli/terminal.sh has one.
#include "harness/base/terminal.h"

#include <gtest/gtest.h>

#include <cstdio>

namespace attest {
namespace {

TEST(Terminal, IsNoFile) {
  std::FILE* file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  EXPECT_FALSE(is_colored(file, ColorChoice::automatic));
  EXPECT_TRUE(is_colored(file, ColorChoice::always));
  std::fclose(file);
  EXPECT_EQ(colored_text("wrong", Severity::bad, false), "wrong");
  EXPECT_EQ(colored_text("wrong", Severity::bad, true), "\x1b[1;31mwrong\x1b[0m");
}

TEST(Terminal, SaysHowLongThingsTake) {
  EXPECT_EQ(duration_words(0.2), "1 s");
  EXPECT_EQ(duration_words(99), "99 s");
  EXPECT_EQ(duration_words(100.5), "2 min");
  EXPECT_EQ(duration_words(7800), "2 h 10 min");
  EXPECT_EQ(duration_words(-3), "0 s");
}

TEST(Terminal, SaysHowFarACommandIs) {
  Progress progress{"", "verdicts", 120, 400, 0, {}, {}};
  EXPECT_EQ(progress_words(progress, 2), "120 of 400 verdicts, 60/s, 5 s left");
  progress.worst = 0.4321;
  progress.failed = 1;
  progress.what = "eigen\x1b[2J";
  EXPECT_EQ(progress_words(progress, 240),
            "120 of 400 verdicts, 2 s each, 10 min left, error/bound up to 0.432, 1 failed: eigen\\x1b[2J");
  EXPECT_EQ(progress_words({"", "cases", 7, 0, 0, {}, 12.5}, 0), "7 cases, 13 s left");
}

TEST(Terminal, DrawsNothingElsewhere) {
  testing::internal::CaptureStderr();
  {
    ProgressLine line;
    EXPECT_FALSE(line.on());
    EXPECT_FALSE(line.due());
    line.draw_now({"", "cases", 1, 9, 0, {}, {}});
    line.clear();
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace attest
