// What failed in the last run comes first, or alone, and stays a failure until it is found again.
#include "harness/run/last_failures.h"

#include <gtest/gtest.h>

#include <fstream>

#include "harness/base/user_error.h"
#include "harness/report/verdict_json.h"
#include "tests/unit/scratch_folder.h"

namespace attest {
namespace {

std::string line_of(const std::string& suite, const std::string& case_line, Status status, bool kept = false) {
  Verdict v;
  v.suite = suite;
  v.case_line = case_line;
  v.backend = "mine";
  v.status = status;
  if (status == Status::fail) v.cause = {Cause::outside_bound};
  OrderedJson json = verdict_to_json(v);
  if (kept) json[kKindKey] = kKeptKind;
  return json.dump() + "\n";
}

constexpr const char* kHeaderLine = "{\"kind\":\"run\",\"schema\":3}\n";

std::vector<CaseList> lists() {
  return {{"one", false, {case_from_line("seq=1 dim=2", ""), case_from_line("seq=2 dim=2", "")}},
          {"two",
           false,
           {case_from_line("seq=1 dim=2", ""), case_from_line("seq=3 dim=2", ""), case_from_line("seq=4 dim=2", "")}}};
}

std::vector<std::string> labels(const std::vector<CaseList>& lists) {
  std::vector<std::string> all;
  for (const CaseList& list : lists) {
    for (const Case& one : list.cases) all.push_back(list.suite + " " + one.label);
  }
  return all;
}

class OfAFile : public testing::Test {
 protected:
  LastFailures failures(const std::string& lines) {
    std::ofstream(folder_ / "run.jsonl") << kHeaderLine << lines;
    return LastFailures(folder_ / "run.jsonl");
  }
  Folder folder_;
};

TEST_F(OfAFile, OnlyWhatFailedStays) {
  const LastFailures last =
      failures(line_of("one", "seq=1 dim=2", Status::pass) + line_of("two", "seq=4 dim=2", Status::fail) +
               line_of("two", "seq=3 dim=2", Status::crashed, true) + line_of("two", "seq=1 dim=2", Status::refused));
  auto cases = lists();
  EXPECT_EQ(last.cases_in(cases), 2u);
  last.keep(cases);
  EXPECT_EQ(labels(cases), (std::vector<std::string>{"two seq=3 dim=2", "two seq=4 dim=2"}));
}

TEST_F(OfAFile, WhatFailedComesFirstInTheOrderOfTheLists) {
  const LastFailures last = failures(line_of("two", "seq=4 dim=2", Status::fail));
  auto cases = lists();
  last.put_first(cases);
  EXPECT_EQ(labels(cases), (std::vector<std::string>{"two seq=4 dim=2", "two seq=1 dim=2", "two seq=3 dim=2",
                                                     "one seq=1 dim=2", "one seq=2 dim=2"}));
}

TEST_F(OfAFile, WhereNothingFailedAllAreChecked) {
  for (const LastFailures& last :
       {failures(line_of("one", "seq=1 dim=2", Status::pass)), LastFailures(folder_ / "none"),
        failures(line_of("three", "seq=9 dim=2", Status::fail))}) {
    auto cases = lists();
    last.keep(cases);
    last.put_first(cases);
    EXPECT_EQ(labels(cases), labels(lists()));
  }
}

TEST_F(OfAFile, FailuresThatTheRunDoesNotComeToStay) {
  const LastFailures last =
      failures(line_of("one", "seq=1 dim=2", Status::fail) + line_of("one", "seq=2 dim=2", Status::fail));
  EarlierRun earlier;
  last.hold_in(earlier);
  EXPECT_FALSE(earlier.find("one", "seq=1 dim=2", "", "mine")) << "it is to be found again";
  Verdict found;
  found.suite = "one";
  found.case_line = "seq=1 dim=2";
  found.backend = "mine";
  earlier.take(found);
  EXPECT_EQ(earlier.taken(), 0u);
  ASSERT_EQ(earlier.left().size(), 1u);
  EXPECT_EQ(earlier.left().front().case_line, "seq=2 dim=2");
}

TEST_F(OfAFile, AFileThatIsNoneIsOneLine) {
  std::ofstream(folder_ / "other.json") << "{\"benchmarks\":[]}\n";
  EXPECT_THROW(LastFailures(folder_ / "other.json"), UserError);
}

}  // namespace
}  // namespace attest
