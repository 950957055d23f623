// The page as text: what it says, and that nothing in results leaves its place.
#include "harness/page/page.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "harness/page/sections.h"
#include "tests/unit/report_run.h"
#include "tests/unit/scratch_folder.h"

namespace attest {
namespace {

const std::string kHostile = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"'&<!--\x1b[2J";

CheckResults checks_with(const std::string& text) {
  CheckResults check;
  check.name = "run" + text + ".jsonl";
  check.header = {{"kind", "run"},
                  {"schema", 2},
                  {"attest", "0.1.0" + text},
                  {"commit", "abc" + text},
                  {"machine", {{"cpu", "cpu" + text}}},
                  {"command", {"attest", "check" + text}},
                  {"backends", {{{"name", "b" + text}, {"library", text}, {"device", text}}}}};
  Verdict bad = verdict_of("bad" + text, Status::fail, "seq=4 dim=4" + text, "cause" + text, "reason" + text);
  bad.suite += text;
  bad.error_over_bound = 3;
  bad.worst = WorstElement{"o" + text, {0, 0, 1, 2}, 1, 2, 0.5};
  bad.error_map = ErrorMap{"o" + text, ErrorGrid(1, 4), 0, 0, ErrorGrid(4, 4)};
  bad.error_map->rows.add(0, 2, 3);
  bad.error_map->elements.add(2, 2, 3);
  Verdict refused = verdict_of("good", Status::refused, "seq=8 dim=4", "", "too long" + text);
  Verdict pass = verdict_of("good", Status::pass, "seq=9 dim=4");
  pass.error_over_bound = 0.25;
  check.verdicts = {bad, refused, pass};
  check.shrunk.push_back({bad.case_line, bad.backend, "seq=1 dim=1" + text, "smaller" + text, "attest check" + text});
  check.problems = {"complaint" + text};
  return check;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

JudgementFile judged(const std::string& text) {
  RankedSubmission fast, wrong;
  fast.submission = "fast.c" + text;
  fast.task = "decode" + text;
  fast.verdict = "pass";
  fast.baseline = "eigen" + text;
  fast.speedup = 1.25;
  fast.speeds.push_back({"seq=4 dim=4" + text, "", 0.002, 0.001, 0.003, 0.5, 1.25});
  wrong.submission = "wrong.c" + text;
  wrong.task = fast.task;
  wrong.verdict = "fail";
  wrong.reason = "outside the bound" + text;
  wrong.failing_case = "seq=1 dim=1" + text;
  return {"judged" + text + ".jsonl", {wrong, fast}, 0};
}

TEST(Page, RunsStandSideBySideAndTellWhatDiffers) {
  CheckResults before = checks_with(""), now = checks_with("");
  before.name = "old.jsonl";
  now.name = "new.jsonl";
  now.verdicts[2].status = Status::fail;
  now.verdicts[2].error_over_bound = 7;
  const SectionJson runs = runs_side_by_side({before, now});
  EXPECT_EQ(runs["differ"], "1");
  EXPECT_EQ(runs["common"], "3 cases");
  ASSERT_EQ(runs["changes"].size(), 1u);
  const SectionJson& change = runs["changes"][0];
  EXPECT_EQ(change["case"], "seq=9 dim=4");
  EXPECT_EQ(change["cells"][0]["text"], "pass, error/bound 0.25");
  EXPECT_EQ(change["cells"][1]["text"], "fail, error/bound 7");
  EXPECT_EQ(change["cells"][1]["kind"], "bad");
  const std::string page = results_page({{before, now}, {}, {}, {}}, {"attest", "report"});
  EXPECT_NE(page.find("id=\"runs\""), std::string::npos);
  // One run, or two without a common case, have nothing to be held against.
  EXPECT_TRUE(runs_side_by_side({before}).empty());
  for (Verdict& v : now.verdicts) v.suite += " of another kind";
  EXPECT_TRUE(runs_side_by_side({before, now}).empty());
}

TEST(Page, RanksJudgements) {
  const std::string page = results_page({{}, {}, {}, {judged("")}}, {"attest", "judge"});
  EXPECT_NE(page.find("1 of 2 passed"), std::string::npos);
  const std::size_t ranking = page.find("id=\"rankings\"");
  ASSERT_NE(ranking, std::string::npos);
  EXPECT_LT(page.find("fast.c", ranking), page.find("wrong.c", ranking));
  for (const char* words : {"1.25", "eigen", "outside the bound", "seq=1 dim=1", "50.0%", "1 to 3"})
    EXPECT_NE(page.find(words, ranking), std::string::npos) << words;
  const std::string harmless = results_page({{}, {}, {}, {judged("")}}, {"attest"});
  const std::string hostile = results_page({{}, {}, {}, {judged(kHostile)}}, {"attest"});
  EXPECT_EQ(count(hostile, "<script"), count(harmless, "<script"));
  EXPECT_EQ(count(hostile, "<img"), 0u);
  EXPECT_EQ(hostile.find('\x1b'), std::string::npos);
}

TEST(Page, ItsFirstLineAnswersWhetherAnythingFailed) {
  const std::string page = results_page({{checks_with("")}, {}, {}}, {"attest", "report"});
  const std::string head = page.substr(page.find("<h1"), page.find("</header>") - page.find("<h1"));
  EXPECT_NE(head.find("1 of 3 results failed"), std::string::npos) << head;
  EXPECT_NE(head.find("(bad, seq=4 dim=4)"), std::string::npos) << head;
  for (const char* words : {"cause", "seq=1 dim=1", "too long", "1 pass, 1 refused", "cpu", "abc"})
    EXPECT_NE(page.find(words), std::string::npos) << words;
  CheckResults good = checks_with("");
  good.verdicts.erase(good.verdicts.begin());
  good.problems.clear();
  const std::string other = results_page({{good}, {}, {}}, {"attest", "report"});
  EXPECT_NE(other.find("nothing failed, 1 passed"), std::string::npos);
  EXPECT_EQ(other.find("id=\"failures\""), std::string::npos);
}

/// What counts in the first line stands below it, once; so does what would make a failing backend right.
TEST(Page, ComplaintsStandAtTheTopOnce) {
  CheckResults check = checks_with("");
  check.problems = {"good says what is false"};
  check.right_if = {{"bad", "stored_weights=bf16 for calls in f32", "arithmetic.stored_weights = DType::bf16;"}};
  const std::string page = results_page({{check}, {}, {}}, {"attest", "report"});
  const std::string head = page.substr(page.find("<h1"), page.find("</header>") - page.find("<h1"));
  EXPECT_NE(head.find("<li>good says what is false</li>"), std::string::npos) << head;
  EXPECT_NE(head.find("bad would be right if it states stored_weights=bf16 for calls in f32: "), std::string::npos);
  EXPECT_EQ(count(page, "good says what is false"), 1u);
}

TEST(Page, AConventionIsNoFailure) {
  CheckResults check = checks_with("");
  check.problems.clear();
  check.verdicts = {verdict_of("peer", Status::convention, "seq=4 dim=4", "", "hidden_nan=leaks")};
  check.shrunk.clear();
  const std::string page = results_page({{check}, {}, {}}, {"attest", "report"});
  EXPECT_NE(page.find("nothing failed, 1 passed"), std::string::npos);
  EXPECT_NE(page.find("hidden_nan=leaks"), std::string::npos) << "what it does otherwise is shown";
}

TEST(Page, TheSmallestCaseOfACauseFailsByIt) {
  CheckResults first = checks_with(""), second = checks_with("");
  second.verdicts.front().cause = {Cause::threw};
  first.shrunk.front().cause = first.verdicts.front().cause.text();
  second.shrunk.front().cause = second.verdicts.front().cause.text();
  second.shrunk.front().smallest = "seq=2 dim=2";
  PageContext context;
  const SectionJson groups = failure_groups({first, second}, context);
  ASSERT_EQ(groups.size(), 2u);
  for (const SectionJson& group : groups) {
    const bool thrown = group["cause"] == second.verdicts.front().cause.text();
    EXPECT_EQ(group["shrunk"]["smallest"], thrown ? "seq=2 dim=2" : "seq=1 dim=1") << group.dump();
  }
}

TEST(Page, NothingInResultsLeavesItsPlace) {
  const std::string harmless = results_page({{checks_with("")}, {}, {}}, {"attest"});
  const std::string page = results_page({{checks_with(kHostile)}, {}, {}}, {"attest", kHostile});
  EXPECT_NE(page.find("alert(1)"), std::string::npos) << "it is shown";
  EXPECT_EQ(page.find('\x1b'), std::string::npos);
  for (const char* tag : {"<script", "</script", "<img", "<!--"})
    EXPECT_EQ(count(page, tag), count(harmless, tag)) << tag;
}

TEST(Page, LoadsNothing) {
  const std::string page = results_page({{checks_with("")}, {}, {}}, {"attest"});
  for (const char* way : {" src=", "url(http", "@import", "<link", "fetch("})
    EXPECT_EQ(page.find(way), std::string::npos) << way;
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
}

TEST(Page, FailuresStandByCauseWithTheirMap) {
  std::vector<CheckResults> checks = {checks_with("")};
  checks[0].verdicts.push_back(checks[0].verdicts[0]);
  checks[0].verdicts.push_back(verdict_of("bad", Status::crashed, "seq=5 dim=4", "", "signal 11"));  // of an older file
  PageContext context;
  const SectionJson groups = failure_groups(checks, context);
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0]["count"], "2");
  EXPECT_EQ(groups[0]["shrunk"]["smallest"], "seq=1 dim=1");
  EXPECT_NE(groups[0]["map"]["svg"].get<std::string>().find("<svg"), std::string::npos);
  EXPECT_EQ(groups[1]["cause"], "crashed");
}

TEST(Page, TheTablesDataAreTheVerdicts) {
  const auto data = SectionJson::parse(case_table_json({checks_with("")}));
  ASSERT_EQ(data["rows"].size(), 3u);
  const auto& row = data["rows"][0];
  const auto text = [&](std::size_t n) { return data["strings"][row[n].get<std::size_t>()].get<std::string>(); };
  EXPECT_EQ(text(0), "seq=4 dim=4");
  EXPECT_EQ(text(2), "bad");
  EXPECT_EQ(text(3), "fail");
  EXPECT_EQ(row[4], 3);
  EXPECT_EQ(text(12) + text(0) + text(13), "attest check --backend bad 'seq=4 dim=4'");
}

TEST(Page, AWaivedSuspectIsNoFailureButStandsBeside) {
  std::vector<CheckResults> checks = {checks_with("")};
  Verdict suspect = verdict_of("good", Status::suspect, "seq=7 dim=4", "", "far off");
  suspect.waiver = "known";
  checks[0].verdicts = {suspect};
  PageContext context;
  EXPECT_TRUE(failure_groups(checks, context).empty());
  const SectionJson asides = reasons_beside_passes(checks);
  ASSERT_EQ(asides.size(), 1u);
  EXPECT_EQ(asides[0]["reason"], "far off Waived: known");
}

TEST(Page, BackendsThatSayTheSameStandTogether) {
  std::vector<CheckResults> checks = {checks_with("")};
  checks[0].verdicts = {verdict_of("one", Status::refused, "seq=7 dim=4", "", "not done"),
                        verdict_of("two", Status::refused, "seq=8 dim=4", "", "not done"),
                        verdict_of("two", Status::refused, "seq=9 dim=4", "", "not done"),
                        verdict_of("two", Status::refused, "seq=9 dim=4", "", "another reason")};
  const SectionJson asides = reasons_beside_passes(checks);
  ASSERT_EQ(asides.size(), 2u);
  EXPECT_EQ(asides[0]["backend"], "one 1, two 2");
  EXPECT_EQ(asides[0]["count"], "3");
  EXPECT_EQ(asides[0]["example"], "seq=7 dim=4");
  EXPECT_EQ(asides[1]["backend"], "two");
}

TEST(Page, ManyBackendsDoNotFillTheHeadline) {
  std::vector<CheckResults> checks = {checks_with("")};
  checks[0].verdicts.clear();
  for (int n = 10; n < 40; ++n)
    checks[0].verdicts.push_back(verdict_of("b" + std::to_string(n), Status::pass, "seq=7 dim=4", "", ""));
  EXPECT_NE(headline_json({checks, {}, {}})["ran"].get<std::string>().find("b17, b18, 21 more"), std::string::npos)
      << headline_json({checks, {}, {}})["ran"];
}

TEST(Page, CountsAreReadable) {
  EXPECT_EQ(counted(17340), "17,340");
  EXPECT_EQ(counted(1234567), "1,234,567");
  EXPECT_EQ(counted(12), "12");
  EXPECT_EQ(counted(1, "case"), "1 case");
  EXPECT_EQ(shown(std::nullopt), "\u2013");
  EXPECT_EQ(shown(kInfinity), "inf");
}

}  // namespace
}  // namespace attest
