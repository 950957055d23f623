// Commands that are printed for people to type.
#include "harness/verdict/printed_command.h"

#include <gtest/gtest.h>

#include "harness/base/run_words.h"

namespace attest {
namespace {

TEST(PrintedCommand, RepeatsWhatNamesTheBackendAndTheOptionsOfTheRun) {
  const RunWords before = run_words();
  run_words() = {{"--threads", "3", "--timeout", "5"}, {"--once"}};
  const Identity mine{"mine", "my library", "CPU", "./lib mine.so", "tile=4"};
  EXPECT_EQ(printed_command("check", mine, "'seq=4 dim=4'"),
            "ATTEST_PARAMETERS=mine.tile=4 attest check --plugin './lib mine.so' --threads 3 --timeout 5 --once "
            "--backend mine 'seq=4 dim=4'");
  EXPECT_EQ(printed_command("list arithmetic", mine),
            "ATTEST_PARAMETERS=mine.tile=4 attest list arithmetic --plugin './lib mine.so' --threads 3 --timeout 5 "
            "--backend mine");
  run_words() = before;
}

TEST(PrintedCommand, BeginsWithTheProgramThatHasTheBackend) {
  const RunWords before = run_words();
  run_words().program = "check_mine";
  EXPECT_EQ(printed_command("fuzz", {"mine", "my library", "CPU"}), "check_mine fuzz --backend mine");
  EXPECT_EQ(printed_command("fuzz", {"mine", "my library", "CPU", "./libmine.so"}),
            "check_mine fuzz --plugin ./libmine.so --backend mine");
  run_words() = before;
}

TEST(PrintedCommand, OfAnObjectThatLivesHereIsALineOfPython) {
  const Identity here{"mine", "my library", "CPU", "here:attention, threads=2"};
  EXPECT_EQ(printed_command("check", here, "'seq=4 dim=4'", "seq=4 dim=4"),
            "attest.check(attention, 'seq=4 dim=4', threads=2)");
}

}  // namespace
}  // namespace attest
