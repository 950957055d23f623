// The cases of a run, by where they were named.
#include "harness/run/case_lists.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
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
  EXPECT_EQ(lists[2].cases[1].line, 4);
  EXPECT_EQ(lists[2].path, path);
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

TEST(CaseLists, AShareIsOfSuitesAndNotOfArguments) {
  const auto lists = load_cases({{"smoke"}, {}, {"seq=5 dim=2"}, "1/8", 5});
  const auto whole = load_cases({{"smoke"}, {}, {"seq=5 dim=2"}});
  ASSERT_EQ(lists.size(), 2u);
  EXPECT_EQ(lists[0].of_cases, whole[0].cases.size());
  EXPECT_EQ(lists[0].cases.size(), (whole[0].cases.size() + 7) / 8);
  EXPECT_EQ(lists[1].cases.size(), 1u);
  EXPECT_EQ(whole[0].of_cases, 0u);
  EXPECT_EQ(fingerprint_of(lists), fingerprint_of(load_cases({{"smoke"}, {}, {"seq=5 dim=2"}, "1/8", 5})));
  EXPECT_NE(fingerprint_of(lists), fingerprint_of(load_cases({{"smoke"}, {}, {"seq=5 dim=2"}, "1/8", 6})));
  EXPECT_THROW(load_cases({{}, {}, {"seq=5 dim=2"}, "1/8"}), UserError);
}

TEST(CaseLists, ReadLinesFromStandardInput) {
  std::istringstream input("# mine\nseq=3 dim=2\n\nseq=4 dim=2  # why\n");
  std::streambuf* const before = std::cin.rdbuf(input.rdbuf());
  const auto lists = load_cases({{}, {}, {"seq=5 dim=2", "-"}});
  std::istringstream twice("seq=3 dim=2\nseq=3 dim=2\n");
  std::cin.rdbuf(twice.rdbuf());
  std::cin.clear();
  EXPECT_THROW(load_cases({{}, {}, {"-"}}), UserError);
  EXPECT_THROW(load_cases({{}, {}, {"-", "-"}}), UserError);
  std::cin.rdbuf(before);
  std::cin.clear();
  ASSERT_EQ(lists.size(), 1u);
  ASSERT_EQ(lists[0].cases.size(), 3u);
  EXPECT_EQ(lists[0].cases[2].label, "seq=4 dim=2");
  EXPECT_EQ(lists[0].cases[2].where, "standard input:4");
  EXPECT_EQ(lists[0].suite, "");
}

}  // namespace
}  // namespace attest
