// The cases of a run, by where they were named.
#include "harness/run/case_lists.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "harness/base/user_error.h"

namespace attest {
namespace {

TEST(CaseLists, ComeInTheOrderSuitesFilesArguments) {
  const auto path = std::filesystem::path(testing::TempDir()) / ("own" + std::to_string(getpid()) + ".cases");
  std::ofstream(path) << "# mine\nseq=3 dim=2\n\nseq=4 dim=2  # why\n";
  const auto lists = load_cases({{"walkthroughs", "smoke"}, {path}, {"seq=5 dim=2", "seq=6 dim=2"}});
  ASSERT_EQ(lists.size(), 4u);
  EXPECT_EQ(lists[0].suite, "walkthroughs");
  EXPECT_TRUE(lists[0].committed);
  EXPECT_TRUE(lists[0].cases.front().from_file);
  EXPECT_EQ(lists[1].suite, "smoke");
  EXPECT_EQ(lists[2].suite, path.stem().string());
  EXPECT_FALSE(lists[2].committed);  // what it refuses is not compared with the lists
  ASSERT_EQ(lists[2].cases.size(), 2u);
  EXPECT_EQ(lists[2].cases[1].label, "seq=4 dim=2");
  EXPECT_EQ(lists[3].suite, "");
  EXPECT_FALSE(lists[3].committed);
  EXPECT_EQ(lists[3].cases[1].label, "seq=6 dim=2");
  std::filesystem::remove(path);
}

TEST(CaseLists, OfNothingAreEmptyAndOfNonsenseAnError) {
  EXPECT_TRUE(load_cases({}).empty());
  EXPECT_THROW(load_cases({{"smoek"}, {}, {}}), UserError);
  EXPECT_THROW(load_cases({{}, {"missing.cases"}, {}}), UserError);
  EXPECT_THROW(load_cases({{}, {}, {"seq=4"}}), UserError);
}

}  // namespace
}  // namespace attest
