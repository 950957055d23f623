// What a launcher of MPI leaves in the environment.
#include "harness/base/launcher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace attest {
namespace {

/// Variables for the length of a test, in place of what a launcher of the test itself may have set.
class Variables {
 public:
  Variables(std::initializer_list<std::pair<const char*, const char*>> set) {
    for (const char* name : {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE", "PMIX_RANK",
                             "SLURM_NTASKS", "OMPITUM"}) {
      if (const char* value = std::getenv(name)) before_[name] = value;
      unsetenv(name);
      names_.emplace_back(name);
    }
    for (const auto& [name, value] : set) setenv(name, value, 1);
  }
  ~Variables() {
    for (const std::string& name : names_) unsetenv(name.c_str());
    for (const auto& [name, value] : before_) setenv(name.c_str(), value.c_str(), 1);
  }
  Variables(const Variables&) = delete;
  Variables& operator=(const Variables&) = delete;

 private:
  std::vector<std::string> names_;
  std::map<std::string, std::string> before_;
};

TEST(Launcher, ByItselfAProcessIsNoRank) {
  const Variables none{{"OMPITUM", "1"}};
  EXPECT_FALSE(launched_rank());
  const Variables slurm_alone{{"SLURM_NTASKS", "4"}};
  EXPECT_FALSE(launched_rank()) << "without a PMI the tasks of a job can't meet";
}

TEST(Launcher, EachLauncherSaysWhichRankOfHowMany) {
  {
    const Variables open_mpi{{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "4"}};
    ASSERT_TRUE(launched_rank());
    EXPECT_EQ(launched_rank()->rank, 2);
    EXPECT_EQ(launched_rank()->size, 4);
  }
  {
    const Variables srun{{"PMIX_RANK", "1"}, {"SLURM_NTASKS", "3"}};
    ASSERT_TRUE(launched_rank());
    EXPECT_EQ(launched_rank()->rank, 1);
    EXPECT_EQ(launched_rank()->size, 3);
  }
  {
    const Variables unsized{{"PMIX_RANK", "1"}};
    ASSERT_TRUE(launched_rank());
    EXPECT_EQ(launched_rank()->size, 0);
  }
}

TEST(Launcher, WhatIsNoNumberIsNoRank) {
  for (const char* nonsense : {"", "-1", "1x", "99999999999999"}) {
    const Variables variables{{"OMPI_COMM_WORLD_RANK", nonsense}};
    EXPECT_FALSE(launched_rank()) << nonsense;
  }
}

TEST(Launcher, WorkersAreNotToldOfIt) {
  const Variables variables{{"OMPI_COMM_WORLD_RANK", "0"}, {"PMIX_RANK", "0"}, {"OMPITUM", "stays"}};
  const std::vector<std::string> kept = environment_without_launcher();
  const auto holds = [&](const std::string& start) {
    return std::any_of(kept.begin(), kept.end(), [&](const std::string& one) { return one.starts_with(start); });
  };
  EXPECT_FALSE(holds("OMPI_"));
  EXPECT_FALSE(holds("PMIX_"));
  EXPECT_TRUE(holds("OMPITUM=stays"));
  EXPECT_TRUE(holds("PATH="));
}

TEST(Launcher, OtherRanksThanTheFirstHaveNoTerminal) {
  const Variables second{{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}};
  EXPECT_FALSE(is_shown_on_terminal(1));
  EXPECT_FALSE(is_shown_on_terminal(2));
}

}  // namespace
}  // namespace attest
