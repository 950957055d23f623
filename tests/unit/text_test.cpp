#include "harness/base/text.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <string>

namespace attest {
namespace {

TEST(Text, IsTrimmedAtItsEndsOnly) {
  EXPECT_EQ(trimmed(" \t a  b\r"), "a  b");
  EXPECT_EQ(trimmed("a"), "a");
  EXPECT_EQ(trimmed(" \r\t"), "");
  EXPECT_EQ(trimmed(""), "");
}

/// What a shell makes of it.
std::string through_shell(const std::string& text) {
  FILE* pipe = popen(("printf %s " + shell_quoted(text)).c_str(), "r");
  std::array<char, 200> got{};
  const std::size_t size = std::fread(got.data(), 1, got.size(), pipe);
  pclose(pipe);
  return {got.data(), size};
}

TEST(Text, ComesBackFromAShellAsItWas) {
  for (const char* text :
       {"seq=4 dim=4", "it's", "$HOME `ls` \\ \"x\"", "a;b|c&d", "*?[x]", "line\nline", "", "spread(88)"}) {
    EXPECT_EQ(through_shell(text), text);
  }
}

TEST(Text, IsQuotedOnlyWhereItMustBe) {
  EXPECT_EQ(shell_quoted("--suite=smoke"), "--suite=smoke");
  EXPECT_EQ(shell_quoted("seq=4 dim=4"), "'seq=4 dim=4'");
  EXPECT_EQ(shell_quoted("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_quoted(""), "''");
}

TEST(Text, ControlCharactersAndBytesThatAreNoUtf8AreShown) {
  EXPECT_EQ(printable("a\tb\nc \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"),
            "a\tb\nc \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
  EXPECT_EQ(printable("\x1b[2Jx\r\x07\x7f"), "\\x1b[2Jx\\x0d\\x07\\x7f");
  EXPECT_EQ(printable(std::string("\0", 1)), "\\x00");
  EXPECT_EQ(printable("\xc2\x9b"
                      "2J"),
            "\\xc2\\x9b"
            "2J");
  EXPECT_EQ(printable("\x9b|\xff|\xc3|\xc0\x80|\xed\xa0\x80|\xf5\x80\x80\x80"),
            "\\x9b|\\xff|\\xc3|\\xc0\\x80|\\xed\\xa0\\x80|\\xf5\\x80\\x80\\x80");
  EXPECT_EQ(printable_line("a\nb\tc"), "a\\x0ab\\x09c");
}

}  // namespace
}  // namespace attest
