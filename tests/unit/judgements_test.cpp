// Files of judgements read back, and their order of merit.
#include "harness/report/judgements.h"

#include <gtest/gtest.h>

#include "harness/base/user_error.h"
#include "tests/unit/scratch_folder.h"

namespace attest {
namespace {

std::string line_of(const std::string& name, const std::string& verdict, const std::string& more = "") {
  return R"({"kind":"judgement","schema":1,"submission":")" + name + R"(","verdict":")" + verdict + "\"" + more + "}\n";
}

class Judgements : public testing::Test {
 protected:
  JudgementFile read(const std::string& text) {
    std::ofstream(folder_ / "r.jsonl") << text;
    return read_judgements(folder_ / "r.jsonl");
  }
  Folder folder_;
};

TEST_F(Judgements, AreReadAsTheyStand) {
  const JudgementFile file =
      read(line_of("a.c", "pass",
                   R"(,"content":"c","task":"t","task_content":"tc","seed":"s","backend":"mine","speedup":1.5,)"
                   R"("cases":{"drawn":7,"passed":6},"speeds":[{"case":"seq=4","seconds":0.002,)"
                   R"("interval":{"low":0.001,"high":0.003}},{"case":"seq=5","no_speed":"cached","reason":"why"}])"));
  ASSERT_EQ(file.all.size(), 1u);
  const RankedSubmission& one = file.all.front();
  EXPECT_EQ(file.name, "r.jsonl");
  EXPECT_EQ(one.submission + " " + one.content + " " + one.task + " " + one.task_content + " " + one.seed,
            "a.c c t tc s");
  EXPECT_EQ(one.passed, 6u);
  EXPECT_EQ(one.cases, 7u);
  EXPECT_EQ(one.speedup, 1.5);
  ASSERT_EQ(one.speeds.size(), 2u);
  EXPECT_EQ(one.speeds[0].low, 0.001);
  EXPECT_EQ(one.speeds[1].reason, "why");
  EXPECT_FALSE(one.speeds[1].seconds);
}

TEST_F(Judgements, ATornLineIsLeftOut) {
  const std::string first = line_of("a.c", "pass"), second = line_of("b.c", "fail");
  const JudgementFile file = read(first + second.substr(0, second.size() - 1));
  ASSERT_EQ(file.all.size(), 1u) << "complete but for its end, which may be missing more";
  EXPECT_EQ(file.complete_bytes, first.size());
  EXPECT_EQ(read(first + second).complete_bytes, first.size() + second.size());
  EXPECT_EQ(read("").all.size(), 0u);
}

TEST_F(Judgements, OtherLinesAreToldWithTheirNumber) {
  for (const char* line : {"{}", "text", R"({"kind":"verdict"})", R"({"kind":"judgement","schema":99})"}) {
    const std::string message = message_of<UserError>([&] { read(line_of("a.c", "pass") + line + "\n"); });
    EXPECT_NE(message.find("r.jsonl:2"), std::string::npos) << message;
  }
}

TEST_F(Judgements, OrderOfMerit) {
  const JudgementFile file =
      read(line_of("invalid.c", "invalid") + line_of("slow.c", "pass", R"(,"speedup":0.5)") +
           line_of("wrong.c", "fail", R"(,"speedup":9)") + line_of("none.c", "pass") +
           line_of("fast.c", "pass", R"(,"speedup":2)") + line_of("open.c", "unproven") +
           line_of("also.c", "pass", R"(,"speedup":2)") + line_of("slow.c", "pass", R"(,"speedup":0.75)"));
  std::string names;
  for (const RankedSubmission& one : ranked(file.all)) names += one.submission + " ";
  EXPECT_EQ(names, "also.c fast.c slow.c none.c open.c wrong.c invalid.c ");
  const std::string table = ranking_table(ranked(file.all));
  EXPECT_NE(table.find("0.75"), std::string::npos) << "the last judgement counts: " << table;
  EXPECT_EQ(table.find("0.5 "), std::string::npos) << table;
}

TEST_F(Judgements, ReasonsInTablesAreShortAndHarmless) {
  const JudgementFile file =
      read(line_of("a\\u001b[2J.c", "fail", ",\"reason\":\"" + std::string(50, 'x') + "äöüäöüäöüäöü\""));
  const std::string table = ranking_table(ranked(file.all));
  EXPECT_EQ(table.find('\x1b'), std::string::npos);
  EXPECT_NE(table.find("..."), std::string::npos) << table;
  EXPECT_EQ(table.find("\\x"), table.find("\\x1b")) << "characters stay whole: " << table;
}

}  // namespace
}  // namespace attest
