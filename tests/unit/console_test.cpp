// The console: each failure with its command, groups by cause, and the last line that others read.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/unit/report_run.h"

namespace attest {
namespace {

TEST(ConsoleReport, TellsARun) {
  testing::internal::CaptureStdout();
  report_a_run(*console_report());
  const std::string text = testing::internal::GetCapturedStdout();
  for (const char* part :
       {"good      loops on CPU\n", "absent    not available: no device\n",
        "\n\nwrong: bad; right: good; 1 pass, 2 fail, 1 refused, 0 inconclusive\n\nbackend ",
        "FAIL bad  seq=4 dim=4\n     o is <wrong>\n",
        "failures by cause:\n  2 x  bad: outside the bound\n      attest check --backend bad 'seq=4 dim=4'\n",
        "  bad would be right if it states stored_weights=bf16 for calls in f32: arithmetic={\"stored_weights\": "
        "\"bf16\"}\n",
        "    smallest found: attest check --backend bad 'seq=1 dim=1'\n", "refused:\n  1 x  good: too long & wide\n",
        "\ngood refuses what is not listed\n"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "is not in:\n" << text;
  }
  EXPECT_TRUE(text.ends_with("\n1 passed, 2 failed, 1 skipped\n")) << text;
}

/// Many failures are shown by their causes alone.
TEST(ConsoleReport, StaysShortWhenAllFails) {
  testing::internal::CaptureStdout();
  const auto report = console_report();
  report->begin({});
  Counts counts;
  for (int n = 1; n <= 500; ++n) {
    const Verdict verdict = verdict_of("bad", Status::fail, "seq=" + std::to_string(n) + " dim=4", "threw", "bang");
    counts.add(verdict);
    report->verdict(verdict);
  }
  report->end(counts, 1, {});
  const std::string text = testing::internal::GetCapturedStdout();
  EXPECT_NE(text.find("500 x  bad: threw"), std::string::npos);
  EXPECT_NE(text.find("497"), std::string::npos);
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 60);
}

std::string told(const ConsoleSettings& settings, const std::vector<Verdict>& verdicts, std::size_t cases) {
  testing::internal::CaptureStdout();
  const auto report = console_report(settings);
  RunInfo info;
  info.backends = {{"good", "loops", "CPU"}};
  info.cases = cases;
  report->begin(info);
  Counts counts;
  for (const Verdict& verdict : verdicts) {
    counts.add(verdict);
    report->verdict(verdict);
  }
  report->end(counts, 1, {});
  return testing::internal::GetCapturedStdout();
}

TEST(ConsoleReport, NamesWhatIsInconclusiveAndWaived) {
  std::vector<Verdict> verdicts;
  for (int n = 1; n <= 5; ++n)
    verdicts.push_back(verdict_of("good", Status::inconclusive, "seq=" + std::to_string(n) + " dim=4", "", "too wide"));
  verdicts.push_back(verdict_of("good", Status::suspect, "seq=9 dim=4", "suspect", "far off"));
  verdicts.back().waiver = "known for years";
  const std::string text = told({}, verdicts, 6);
  EXPECT_NE(text.find("0 pass, 0 fail, 0 refused, 5 inconclusive, 1 waived\n"), std::string::npos) << text;
  EXPECT_NE(text.find("  5 x  good: too wide\n      seq=1 dim=4\n      seq=2 dim=4\n      seq=3 dim=4\n"
                      "      ... and 2 more (--verbose)\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("  1 x  good: known for years\n      seq=9 dim=4\n"), std::string::npos) << text;
  ConsoleSettings verbose;
  verbose.detail = Detail::verbose;
  const std::string more = told(verbose, verdicts, 6);
  EXPECT_NE(more.find("inconclusive good               -  seq=5 dim=4   too wide\n"), std::string::npos) << more;
  EXPECT_EQ(more.find("more (--verbose)"), std::string::npos) << more;
}

TEST(ConsoleReport, SaysLessOfOneCaseAndWhenAskedTo) {
  const std::vector<Verdict> verdicts = {verdict_of("good", Status::pass, "seq=4 dim=4")};
  EXPECT_EQ(told({}, verdicts, 1).find("loops on CPU"), std::string::npos);
  EXPECT_NE(told({}, verdicts, 2).find("loops on CPU"), std::string::npos);
  ConsoleSettings quiet;
  quiet.detail = Detail::quiet;
  EXPECT_EQ(told(quiet, verdicts, 2),
            "right: good; 1 pass, 0 fail, 0 refused, 0 inconclusive\n1 passed, 0 failed, 0 skipped\n");
}

/// A reason is on the line where it stands: neither a terminal nor a CI takes a part of it for a command.
TEST(ConsoleReport, EscapesWhatIsHostile) {
  const Verdict v = verdict_of("bad", Status::fail, "seq=4 dim=4", "x\n::error::x", "\x1b[2J\n::add-mask::x\r");
  const std::string text = told({}, {v}, 2);
  EXPECT_EQ(text.find("\n::"), std::string::npos) << text;
  EXPECT_EQ(text.find_first_of("\x1b\r"), std::string::npos) << text;
  EXPECT_NE(text.find("\\x1b[2J\\x0a::add-mask::x\\x0d"), std::string::npos) << text;
  const std::string named = told({}, {verdict_of("good", Status::inconclusive, "::error::x", "", "too wide")}, 2);
  EXPECT_NE(named.find("\n      \\x3a:error::x\n"), std::string::npos) << named;
  ConsoleSettings colored;
  colored.colored = true;
  EXPECT_NE(told(colored, {v}, 2).find("\x1b[1;31mFAIL\x1b[0m bad"), std::string::npos);
}

TEST(ConsoleReport, LeavesATableForProgramsAlone) {
  ConsoleSettings settings;
  settings.format = TableFormat::csv;
  settings.out = stderr;
  testing::internal::CaptureStderr();
  const std::string table = told(settings, {verdict_of("good", Status::pass, "seq=4 dim=4")}, 1);
  const std::string rest = testing::internal::GetCapturedStderr();
  EXPECT_EQ(table, "backend,pass,fail,refused,inconclusive,error/bound,largest at\ngood,1,0,0,0,,\n");
  EXPECT_NE(rest.find("right: good"), std::string::npos) << rest;
  EXPECT_TRUE(rest.ends_with("\n1 passed, 0 failed, 0 skipped\n")) << rest;
}

}  // namespace
}  // namespace attest
