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
  EXPECT_EQ(trimmed("\n17 \n\n"), "17");
  EXPECT_EQ(trimmed(" \r\t\n"), "");
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

TEST(Text, NumbersAreWrittenAsPeopleDo) {
  EXPECT_EQ(number_words(1.022e16, 3), "1.02e16");
  EXPECT_EQ(number_words(2.79e-5, 3), "2.79e-5");
  EXPECT_EQ(number_words(-1e100, 4), "-1e100");
  EXPECT_EQ(number_words(0.25, 4), "0.25");
  EXPECT_EQ(number_words(0, 4), "0");
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
  EXPECT_EQ(shell_line({"attest", "check", "seq=4 dim=4", ""}), "attest check 'seq=4 dim=4' ''");
  EXPECT_EQ(shell_line({}), "");
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

/// Marks of direction show text that isn't there.
TEST(Text, MarksOfDirectionAreShown) {
  EXPECT_EQ(printable_line("pass\xe2\x80\xae"
                           "liaf"),
            "pass\\xe2\\x80\\xaeliaf");
  EXPECT_EQ(printable("\xe2\x81\xa6\xe2\x80\xa8"), "\\xe2\\x81\\xa6\\xe2\\x80\\xa8");
}

TEST(Text, IsPlainInMarkdown) {
  EXPECT_EQ(markdown_text("heads=8/2 seq=33x65 align=bottom-right, 0.5 (1%)"),
            "heads=8/2 seq=33x65 align=bottom-right, 0.5 (1%)");
  EXPECT_EQ(
      markdown_text("a_b*c*|<b>&[x](y)`z`#@#1\n!~$^\\"),
      "a&#95;b&#42;c&#42;&#124;&#60;b&#62;&#38;&#91;x&#93;(y)&#96;z&#96;&#35;&#64;&#35;1&#92;x0a&#33;&#126;&#36;&#94;"
      "&#92;");
  EXPECT_EQ(markdown_text("- item"), "&#45; item");
  EXPECT_EQ(markdown_text("12. item"), "12&#46; item");
  EXPECT_EQ(markdown_text("see https://x.y and www.z"), "see https&#58;//x.y and www&#46;z");
  EXPECT_EQ(markdown_text(""), "");
}

TEST(Text, IsNoFormulaInCsv) {
  EXPECT_EQ(csv_cell("seq=4 dim=4"), "seq=4 dim=4");
  EXPECT_EQ(csv_cell("a, \"b\""), "\"a, \"\"b\"\"\"");
  EXPECT_EQ(csv_cell(" a"), "\" a\"");
  EXPECT_EQ(csv_cell("a\nb"), "a\\x0ab");
  for (const char* start : {"=", "+", "-", "@", "\xef\xbc\x9d", "\xef\xbc\xa0"})
    EXPECT_EQ(csv_cell(start + std::string("cmd")), "'" + (start + std::string("cmd")));
  EXPECT_EQ(csv_cell("\tcmd"), "\\x09cmd");
}

}  // namespace
}  // namespace attest
