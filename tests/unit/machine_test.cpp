// What stands beside every number.
#include "harness/base/machine.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace attest {
namespace {

TEST(Machine, SaysWhatItIs) {
  const Machine machine = this_machine();
  EXPECT_FALSE(machine.cpu.empty());
  EXPECT_GE(machine.cores, 1);
  EXPECT_GT(machine.memory_gib, 0.01);
  EXPECT_LT(machine.memory_gib, 1e6);
  EXPECT_NE(machine.system.find("Linux"), std::string::npos) << machine.system;
  EXPECT_NE(machine.build.find("ATTEST_ARCH="), std::string::npos) << machine.build;
}

TEST(Machine, HasNoMoreMemoryToGiveThanItHas) {
  const double available = available_memory_bytes();
  EXPECT_GT(available, 0);
  EXPECT_LE(available, this_machine().memory_gib * 0x1p30);
}

TEST(Machine, TheProgramIsThisOne) {
  EXPECT_TRUE(std::filesystem::is_regular_file(program_path()));
  EXPECT_EQ(program_path().filename(), "unit_tests");
}

TEST(Machine, ABuildHasACommit) {
  // Twelve digits, or "unknown" outside a checkout; "+" for sources that differ from it.
  const std::string commit = build_commit();
  EXPECT_TRUE(commit == "unknown" || commit.find_first_not_of("0123456789abcdef") >= 12)  // npos for a clean one
      << commit;
}

}  // namespace
}  // namespace attest
