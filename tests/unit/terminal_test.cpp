// Colours and progress: on a terminal alone, or where they are asked for.
#include "harness/base/terminal.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace attest {
namespace {

/// Standard error as a terminal of `columns` columns, until the end.
class PseudoTerminal {
 public:
  explicit PseudoTerminal(unsigned short columns) : main_(posix_openpt(O_RDWR | O_NOCTTY)) {
    if (main_ < 0 || grantpt(main_) != 0 || unlockpt(main_) != 0) return;
    other_ = open(ptsname(main_), O_RDWR | O_NOCTTY);
    winsize size{};
    size.ws_col = columns;
    size.ws_row = 24;
    ioctl(main_, TIOCSWINSZ, &size);
    saved_ = dup(STDERR_FILENO);
    dup2(other_, STDERR_FILENO);
  }
  ~PseudoTerminal() {
    restore();
    close(main_);
  }
  PseudoTerminal(const PseudoTerminal&) = delete;
  PseudoTerminal& operator=(const PseudoTerminal&) = delete;

  bool good() const { return other_ >= 0; }
  /// What was drawn; standard error is then what it was.
  std::string drawn() {
    restore();
    std::string text;
    char part[4096];
    pollfd readable{main_, POLLIN, 0};  // the system hands over what was written a moment later
    while (poll(&readable, 1, 300) > 0 && (readable.revents & POLLIN) != 0) {
      const ssize_t size = read(main_, part, sizeof part);
      if (size <= 0) break;
      text.append(part, static_cast<std::size_t>(size));
    }
    return text;
  }

 private:
  void restore() {
    if (saved_ < 0) return;
    std::fflush(stderr);
    dup2(saved_, STDERR_FILENO);
    close(saved_);
    saved_ = -1;
  }
  int main_ = -1, other_ = -1, saved_ = -1;
};

/// A variable of the environment, as it was at the end.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    value ? setenv(name, value, 1) : unsetenv(name);
  }
  ~Variable() { before_.empty() ? unsetenv(name_) : setenv(name_, before_.c_str(), 1); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::string before_;
};

TEST(Terminal, HasColoursUnlessSomebodySaysNo) {
  PseudoTerminal terminal(80);
  ASSERT_TRUE(terminal.good());
  const Variable kind("TERM", "xterm");
  const Variable unset("NO_COLOR", nullptr);
  EXPECT_TRUE(is_colored(stderr, ColorChoice::automatic));
  EXPECT_FALSE(is_colored(stderr, ColorChoice::never));
  {
    const Variable none("NO_COLOR", "1");
    EXPECT_FALSE(is_colored(stderr, ColorChoice::automatic));
    EXPECT_TRUE(is_colored(stderr, ColorChoice::always));
  }
  {
    const Variable empty("NO_COLOR", "");
    EXPECT_TRUE(is_colored(stderr, ColorChoice::automatic));
  }
  const Variable dumb("TERM", "dumb");
  EXPECT_FALSE(is_colored(stderr, ColorChoice::automatic));
  EXPECT_FALSE(ProgressLine().on());
}

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

/// One line, drawn over itself, no longer than the terminal is wide; then nothing of it is left.
TEST(Terminal, RedrawsOneLine) {
  PseudoTerminal terminal(30);
  ASSERT_TRUE(terminal.good());
  const Variable kind("TERM", "xterm");
  {
    ProgressLine line;
    EXPECT_TRUE(line.on());
    line.draw({"a long name of a long case", "cases", 1, 9, 0, {}, {}});
    line.draw({"", "cases", 2, 9, 0, {}, {}});
    EXPECT_FALSE(line.due());
  }
  const std::string drawn = terminal.drawn();
  ASSERT_TRUE(drawn.starts_with("\r1 of 9 cases: a long name")) << drawn;
  EXPECT_EQ(drawn.find("\x1b[K"), 30u) << drawn;  // behind the return and 29 columns
  EXPECT_TRUE(drawn.ends_with("\r\x1b[K")) << drawn;
  EXPECT_EQ(drawn.find("2 of 9"), std::string::npos) << drawn;
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
