// Solutions of FlashInfer-Bench, right and hostile ones.
#include "harness/judge/solution.h"

#include <gtest/gtest.h>

#include "harness/judge/submission_files.h"
#include "tests/unit/scratch_folder.h"

namespace attest {
namespace {

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
