// The file that judgements are added to.
#include "harness/judge/result_lines.h"

#include <gtest/gtest.h>

#include "harness/base/user_error.h"
#include "tests/unit/scratch_folder.h"

namespace attest {
namespace {

const std::string kLine = R"({"kind":"judgement","schema":1,"submission":"a.c","verdict":"pass"})";

TEST(ResultLines, AreAddedBehindWhatIsThere) {
  const Folder folder;
  {
    ResultLines lines(folder / "r.jsonl");
    EXPECT_TRUE(lines.earlier().empty());
    lines.append(kLine);
    EXPECT_EQ(text_of(folder / "r.jsonl"), kLine + "\n") << "at once";
  }
  std::ofstream(folder / "r.jsonl", std::ios::app) << kLine.substr(0, 20);
  ResultLines lines(folder / "r.jsonl");
  EXPECT_EQ(lines.earlier().size(), 1u);
  lines.append(kLine);
  EXPECT_EQ(text_of(folder / "r.jsonl"), kLine + "\n" + kLine + "\n") << "the torn line has gone";
}

TEST(ResultLines, OneProcessWrites) {
  const Folder folder;
  const ResultLines lines(folder / "r.jsonl");
  const std::string message = message_of<UserError>([&] { ResultLines(folder / "r.jsonl"); });
  EXPECT_NE(message.find("another process"), std::string::npos) << message;
}

TEST(ResultLines, OtherFilesStayWhatTheyAre) {
  const Folder folder;
  std::ofstream(folder / "notes") << "notes of mine\nand more";
  EXPECT_THROW(ResultLines(folder / "notes"), UserError);
  EXPECT_EQ(text_of(folder / "notes"), "notes of mine\nand more");
  EXPECT_THROW(ResultLines(folder / "no/such/folder"), UserError);
  ResultLines nowhere("");
  nowhere.append(kLine);
}

}  // namespace
}  // namespace attest
