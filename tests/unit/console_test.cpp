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
        "FAIL bad  seq=4 dim=4\n     o is <wrong>\n",
        "failures by cause:\n  2 x  bad: outside the bound\n      attest check --backend bad 'seq=4 dim=4'\n",
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
  EXPECT_NE(text.find("... and 497 more"), std::string::npos);
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 60);
}

}  // namespace
}  // namespace attest
