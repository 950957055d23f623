// What an interrupted run had found is found again, unless it was found under other conditions.
#include "harness/report/earlier_run.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "harness/base/user_error.h"
#include "harness/report/verdict_json.h"

namespace attest {
namespace {

Verdict a_verdict(Status status) {
  Verdict v;
  v.suite = "smoke";
  v.case_line = "heads=2 seq=3x5 dim=4";
  v.backend = "a backend";
  v.status = status;
  v.reason = "line one\n\"quoted\"";
  return v;
}

const Conditions kHere = {{"program", "1a"}, {"libraries", "2b"}, {"threads", "2"}, {"backend.a backend", "1.0"}};

std::string header_of(const Conditions& conditions) {
  return OrderedJson{{"kind", "run"}, {"conditions", conditions}}.dump() + "\n";
}

EarlierRun read_back(const std::string& text, const Conditions& now = kHere) {
  std::istringstream file(text);
  EarlierRun run(now);
  run.read(file, "verdicts.jsonl");
  return run;
}

const Verdict* find(const EarlierRun& run, const Verdict& v) {
  return run.find(v.suite, v.case_line, v.content, v.backend);
}

TEST(EarlierRun, KnowsWhatAFileHeld) {
  Verdict failure = a_verdict(Status::crashed);
  failure.cause = {Cause::crashed};
  const std::string line = verdict_to_json(failure).dump();
  const EarlierRun run = read_back(header_of(kHere) + line + "\n" + line.substr(0, line.size() / 2));
  EXPECT_EQ(run.size(), 1u);
  const Verdict* found = find(run, failure);
  ASSERT_TRUE(found);
  EXPECT_EQ(verdict_to_json(*found).dump(), verdict_to_json(failure).dump());
  EXPECT_FALSE(run.find("", failure.case_line, "", failure.backend));
}

TEST(EarlierRun, AFailureWithoutACauseOfAnOlderFileHasOneToBeGroupedBy) {
  const Verdict failure = a_verdict(Status::crashed);
  const EarlierRun run = read_back(header_of(kHere) + verdict_to_json(failure).dump() + "\n");
  const Verdict* found = find(run, failure);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->cause.text(), "of the run before");
}

TEST(EarlierRun, TakesNoVerdictFoundUnderOtherConditions) {
  const std::string line = verdict_to_json(a_verdict(Status::pass)).dump() + "\n";
  EXPECT_EQ(read_back(header_of(kHere) + line).size(), 1u);
  for (const auto& [name, value] : kHere) {
    Conditions other = kHere;
    other[name] += " otherwise";
    try {
      read_back(header_of(other) + line);
      ADD_FAILURE() << name;
    } catch (const UserError& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with("verdicts.jsonl: ")) << error.what();
    }
    other.erase(name);
    if (name.starts_with("backend."))
      EXPECT_EQ(read_back(header_of(other) + line).size(), 1u) << "a backend that one of the runs has";
    else
      EXPECT_THROW(read_back(header_of(other) + line), UserError) << name;
  }
  EXPECT_THROW(read_back("{\"kind\":\"run\",\"commit\":\"abc\"}\n" + line), UserError) << "an older header";
  EXPECT_EQ(read_back(line).size(), 0u) << "no header";
}

TEST(EarlierRun, AFailureIsNotReplacedByAPass) {
  const std::string fail = verdict_to_json(a_verdict(Status::fail)).dump() + "\n",
                    pass = verdict_to_json(a_verdict(Status::pass)).dump() + "\n";
  for (const std::string& text : {fail + pass, pass + fail}) {
    const EarlierRun run = read_back(header_of(kHere) + text);
    const Verdict* found = find(run, a_verdict(Status::pass));
    ASSERT_TRUE(found);
    EXPECT_EQ(found->status, Status::fail);
  }
}

TEST(EarlierRun, AFileThatChangedIsAnotherCase) {
  Verdict v = a_verdict(Status::pass);
  v.content = "aa";
  const EarlierRun run = read_back(header_of(kHere) + verdict_to_json(v).dump() + "\n");
  EXPECT_TRUE(find(run, v));
  v.content = "bb";
  EXPECT_FALSE(find(run, v));
}

TEST(EarlierRun, KeepsWhatIsNotTaken) {
  Verdict one = a_verdict(Status::pass), two = one;
  two.case_line = "seq=5 dim=4";
  OrderedJson kept = verdict_to_json(two);
  kept[kKindKey] = kKeptKind;
  EarlierRun run = read_back(header_of(kHere) + verdict_to_json(one).dump() + "\n" + kept.dump() + "\n");
  EXPECT_EQ(run.size(), 2u);
  run.take(one);
  run.take(one);
  EXPECT_EQ(run.taken(), 1u);
  ASSERT_EQ(run.left().size(), 1u);
  EXPECT_EQ(verdict_to_json(run.left().front()).dump(), verdict_to_json(two).dump());
}

TEST(EarlierRun, ALineWithoutEndTakesNoMemory) {
  std::istringstream file(header_of(kHere) + std::string(3 << 20, ' ') + "\n" +
                          verdict_to_json(a_verdict(Status::pass)).dump());
  EarlierRun run(kHere);
  run.read(file, "long");
  EXPECT_EQ(run.size(), 1u);
}

TEST(EarlierRun, ReadsWhatUnfinishedRunsLeftAndRemovesIt) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / ("earlier_run." + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const std::filesystem::path path = folder / "results.jsonl", part = path.string() + ".part17";
  std::ofstream(part) << header_of(kHere) << verdict_to_json(a_verdict(Status::pass)).dump() << "\n";
  const EarlierRun run(path, kHere);  // which isn't there: that run never finished
  EXPECT_EQ(run.size(), 1u);
  run.remove_parts();
  EXPECT_FALSE(std::filesystem::exists(part));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace attest
