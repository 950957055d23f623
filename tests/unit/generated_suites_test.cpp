// Generated suites stand beside those of files, and nobody need know which is which.
#include "harness/cases/generated_suites.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "harness/cases/suites.h"
#include "harness/run/case_lists.h"

namespace attest {
namespace {

TEST(GeneratedSuites, AreFoundByName) {
  EXPECT_GE(generated_suites().size(), 2u);
  for (const GeneratedSuite& one : generated_suites()) {
    const Suite suite = find_suite(std::string(one.name));
    EXPECT_EQ(suite.about, one.about);
    EXPECT_TRUE(suite.path.empty());
  }
}

TEST(GeneratedSuites, TakeTheSeedOfTheRun) {
  const auto labels = [](std::uint64_t seed) {
    std::vector<std::string> list;
    for (const CaseList& one : load_cases({{"drawn"}, {}, {}, "1/20", seed})) {
      EXPECT_FALSE(one.committed);  // no list can hold what it refuses
      EXPECT_EQ(one.of_cases, 2000u);
      for (const Case& source : one.cases) list.push_back(source.label);
    }
    return list;
  };
  EXPECT_EQ(labels(7).size(), 100u);
  EXPECT_EQ(labels(7), labels(7));
  EXPECT_NE(labels(7), labels(8));
}

}  // namespace
}  // namespace attest
