// One case from what a user typed.
#include "harness/cases/case.h"

#include <gtest/gtest.h>

#include <string>

#include "harness/base/data_folder.h"
#include "harness/base/user_error.h"
#include "tests/unit/complaint.h"

namespace attest {
namespace {

std::string complaint_about(const std::string& line, const std::string& where) {
  return complaint([&] { case_from_line(line, where); });
}

TEST(Case, OfALineIsItsCanonicalForm) {
  const Case one = case_from_line("dim=4  seq=4x4 heads=2/2 dtype=f32", "mine.cases:3");
  EXPECT_EQ(one.label, "heads=2 seq=4 dim=4");
  EXPECT_EQ(one.where, "mine.cases:3");
  EXPECT_FALSE(one.from_file);
  EXPECT_FALSE(one.inputs);  // made when it runs
  EXPECT_EQ(one.problem.call.query_heads, 2);
}

TEST(Case, AMistakeIsMarkedAtItsColumn) {
  EXPECT_EQ(complaint_about("seq=4 dim=0", "").find("case line, column 11: "), 0u)
      << complaint_about("seq=4 dim=0", "");
  EXPECT_NE(complaint_about("seq=4 dim=0", "").find("(\"seq=4 dim= >>0\")"), std::string::npos);
  EXPECT_EQ(complaint_about("seq=4", "mine.cases:3").find("mine.cases:3: case line, column "), 0u);
}

TEST(Case, AnArgumentIsALineOrAFile) {
  EXPECT_EQ(case_from_argument("seq=4 dim=4").label, "seq=4 dim=4");
  const std::string path = data_folder("golden") / "walkthroughs" / "three_tokens.safetensors";
  const Case file = case_from_argument(path);
  EXPECT_TRUE(file.from_file);
  EXPECT_TRUE(file.inputs);
  EXPECT_EQ(file.label, path);
  EXPECT_THROW(case_from_argument("missing.safetensors"), UserError);
}

}  // namespace
}  // namespace attest
