// A file of verdicts read as a whole. What is no whole file: result_files_test.cpp, too.
#include "harness/report/check_results.h"

#include <fstream>
#include <sstream>

#include "harness/base/user_error.h"
#include "tests/unit/report_run.h"
#include "tests/unit/scratch_folder.h"

namespace attest {
namespace {

TEST(CheckResults, HoldWhatARunTold) {
  std::istringstream file(written_report(json_lines_report));
  const CheckResults results = read_check(file, "a folder/a.jsonl");
  EXPECT_EQ(results.name, "a.jsonl");
  EXPECT_EQ(results.verdicts.size(), 4u);
  EXPECT_EQ(results.shrunk.size(), 1u);
  EXPECT_EQ(results.problems.size(), 1u);
  EXPECT_EQ(results.header["command"][1], "check");
  EXPECT_FALSE(results.interrupted);
}

TEST(CheckResults, AFileThatIsNoneIsOneLine) {
  const Folder folder;
  const auto complaint_about = [&](const std::string& text) {
    const fs::path path = folder / "some";
    std::ofstream(path) << text;
    const std::string message = message_of<UserError>([&] { read_check(path); });
    EXPECT_EQ(message.find(path.string()), 0u) << message;
    return message;
  };
  for (const char* text : {"", "\n", "{", "{\"benchmarks\":[]}", "{\"kind\":\"verdict\"}"})
    EXPECT_NE(complaint_about(text), "") << text;
  EXPECT_NE(complaint_about("{\"kind\":\"run\"}\n"), "");
  EXPECT_THROW(read_check(folder / "absent"), UserError);
}

}  // namespace
}  // namespace attest
