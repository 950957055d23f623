#include "harness/judge/submission.h"

#include <gtest/gtest.h>

#include "harness/base/user_error.h"
#include "harness/judge/solution.h"
#include "tests/unit/scratch_folder.h"

namespace attest {
namespace {

TEST(Submission, FirstErrorOfACompiler) {
  EXPECT_EQ(first_error("/a/b/kernel.c: In function 'f':\n/a/b/kernel.c:3:1: error: unknown type name 'x'\nmore\n"),
            "kernel.c:3:1: error: unknown type name 'x'");
  EXPECT_EQ(first_error("/tmp/x.o: in function `f':\nx.c:(.text+0x5): undefined reference to `g'\n"),
            "x.c:(.text+0x5): undefined reference to `g'");
  EXPECT_EQ(first_error("cc: fatal trouble\n"), "cc: fatal trouble");
  EXPECT_EQ(first_error(""), "");
}

TEST(Submission, WhatIsNoFileOrNoKernelIsTheUsersFault) {
  EXPECT_THROW(take_submission("/nobody/kernel.c"), UserError);
  EXPECT_THROW(take_submission("/etc/hosts"), UserError);
}

TEST(Submission, AFileCalledLikeAnObjectOfAnotherIsItself) {
  const Folder folder;
  std::ofstream(folder / "other.c") << "int other;";
  // Without this file it is the object ":kernel.c" of other.py, for which an interpreter is asked first.
  std::ofstream(folder / "other.py:kernel.c") << "int mine;";
  const Submission taken = take_submission((folder / "other.py:kernel.c").string());
  EXPECT_EQ(taken.files.main.front(), "other.py:kernel.c");
  EXPECT_EQ(taken.object, "");
}

class SolutionFile : public testing::Test {
 protected:
  Solution read(const std::string& text) {
    std::ofstream(folder_ / "solution.json") << text;
    return read_solution(folder_ / "solution.json");
  }
  /// What is said of it where it can't be read.
  std::string reason(const std::string& text) {
    try {
      read(text);
    } catch (const InvalidSubmission& error) {
      return error.what();
    }
    return "";
  }
  const Folder folder_;
};

TEST_F(SolutionFile, IsReadAndWritten) {
  const Solution solution = read(R"({"spec": {"language": "python", "entry_point": "a/main.py::run"},
      "sources": [{"path": "a/main.py", "content": "x = 1"}, {"path": "b.py", "content": ""}]})");
  EXPECT_EQ(solution.main, "a/main.py");
  EXPECT_EQ(solution.function, "run");
  EXPECT_TRUE(solution.into) << "as the board has it where nothing is said";
  write_sources(solution, folder_ / "to");
  EXPECT_EQ(text_of(folder_ / "to/a/main.py"), "x = 1");
  EXPECT_TRUE(fs::exists(folder_ / "to/b.py"));
}

TEST_F(SolutionFile, CantBeHostile) {
  EXPECT_NE(reason(std::string(3'000'000, '[')).find("no solution"), std::string::npos);
  EXPECT_NE(reason(std::string(5'000'000, ' ') + R"({"spec": {}, "sources": []})").find("no solution"),
            std::string::npos);
  EXPECT_NE(reason("\xff\xfe{}").find("no solution"), std::string::npos);
  EXPECT_NE(reason(R"({"spec": {"language": 7}, "sources": []})").find("says no language"), std::string::npos);
  EXPECT_NE(
      reason(R"({"spec": {"language": "python", "entry_point": "m.py::run"}, "sources": [7]})").find("says no path"),
      std::string::npos);
}

}  // namespace
}  // namespace attest
