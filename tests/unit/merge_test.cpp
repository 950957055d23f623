// Runs of parts put together are the run of the whole, and say so where they aren't.
#include "harness/report/merge.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include "harness/base/user_error.h"
#include "harness/run/check_run.h"
#include "tests/faulty/faulty.h"
#include "tests/unit/helpers.h"
#include "tests/unit/scratch_folder.h"

namespace attest {
namespace {

const std::vector<std::string> kLines = {"seq=3 dim=2", "seq=64 dim=8 softcap=0.1",
                                         "seq=5 dim=2", "dtype=f16 seq=6 dim=8 softcap=0.1",
                                         "seq=7 dim=2", "seq=9 dim=8 softcap=0.1"};

/// Two right backends' names come from two registries; these are one set: a right one and a wrong one.
std::vector<BackendEntry> right_and_wrong() {
  std::vector<BackendEntry> entries;
  for (const BackendEntry& one : registered_backends()) {
    if (one.name == std::string("example")) entries.push_back(one);
  }
  for (const BackendEntry& one : faulty::faulty_backends()) {
    if (one.name == std::string("softcap_dropped")) entries.push_back(one);
  }
  return entries;
}

const std::vector<std::string> kBoth = {"example", "softcap_dropped"};

/// The file of a run.
CheckResults ran(const Folder& folder, const std::string& shard, const std::vector<std::string>& backends = kBoth,
                 const std::vector<std::string>& lines = kLines) {
  const std::vector<BackendEntry> entries = right_and_wrong();
  const BackendSet set(entries, backends, {1, ""});
  const fs::path path = folder / ("of" + std::to_string(shard.empty() ? 0 : shard[0] - '0') + ".jsonl").c_str();
  CheckSettings settings;
  settings.shard = shard;
  settings.conditions = {{"program", "1a"}, {"processor", "one"}};
  std::vector<std::unique_ptr<Report>> reports;
  reports.push_back(json_lines_report(path));
  const std::vector<BackendSet> none;
  CheckRun(settings, load_cases({{}, {}, lines}), set, none, {}, std::move(reports)).run();
  return read_check(path);
}

/// Verdicts without their times.
std::vector<std::string> facts(std::vector<Verdict> verdicts) {
  std::vector<std::string> lines;
  for (Verdict& v : verdicts) {
    v.seconds = {};
    lines.push_back(verdict_to_json(v).dump());
  }
  return lines;
}

/// A statement that makes all failures right must be one of every part in which the backend fails.
TEST(Merge, TellsAStatementThatEveryFailingPartTells) {
  const Folder folder;
  const RightIfTold statement{"softcap_dropped", "exp_ulps=8 for calls in f32", "arithmetic.exp_ulps = 8;"};
  std::vector<CheckResults> parts = {ran(folder, "1/2"), ran(folder, "2/2")};
  const auto fails = [](const CheckResults& part) {
    return std::any_of(part.verdicts.begin(), part.verdicts.end(), [](const Verdict& v) { return is_failure(v); });
  };
  ASSERT_TRUE(fails(parts[0]) && fails(parts[1]));
  EXPECT_TRUE(merge_runs(parts).right_if.empty());
  parts[0].right_if = {statement};
  EXPECT_TRUE(merge_runs(parts).right_if.empty()) << "the other part's failures have no such statement";
  parts[1].right_if = {statement};
  ASSERT_EQ(merge_runs(parts).right_if.size(), 1u);
  EXPECT_EQ(merge_runs(parts).right_if[0].statement, statement.statement);
}

TEST(Merge, OfAllPartsIsTheWholeRun) {
  const Folder folder;
  const CheckResults whole = ran(folder, "");
  const MergedRun merged = merge_runs({ran(folder, "3/3"), ran(folder, "1/3"), ran(folder, "2/3")});
  EXPECT_EQ(facts(merged.verdicts), facts(whole.verdicts)) << "in the same order";
  EXPECT_EQ(merged.verdicts.size(), 12u);
  EXPECT_TRUE(merged.problems.empty());
  EXPECT_TRUE(merged.doubles.empty());
  EXPECT_TRUE(merged.differences.empty());
  EXPECT_FALSE(merged.shrunk.empty());
  EXPECT_EQ(merged.info.parts.size(), 3u);
  EXPECT_EQ(merged.info.parts[0].shard, "3/3");
  EXPECT_EQ(merged.info.selection.shard, "");
  EXPECT_EQ(merged.info.verdicts, 12u);
  EXPECT_EQ(merged.info.conditions.at("program"), "1a") << "a run can go on from it";
  const auto half = std::find_if(merged.verdicts.begin(), merged.verdicts.end(),
                                 [](const Verdict& v) { return v.case_line.starts_with("dtype=f16"); });
  EXPECT_EQ(half->dtype, DType::f16);
}

TEST(Merge, OfBackendsApartIsTheWholeRun) {
  const Folder folder;
  const CheckResults whole = ran(folder, "");
  const MergedRun merged = merge_runs({ran(folder, "", {"example"}), ran(folder, "", {"softcap_dropped"})});
  EXPECT_EQ(facts(merged.verdicts), facts(whole.verdicts));
  EXPECT_TRUE(merged.problems.empty());
  EXPECT_EQ(merged.info.backends.size(), 2u);
}

TEST(Merge, OfMergedFilesIsTheSame) {
  const Folder folder;
  const CheckResults whole = ran(folder, "");
  const auto written = [&](const char* name, std::vector<CheckResults> parts) {
    std::vector<std::unique_ptr<Report>> reports;
    reports.push_back(json_lines_report(folder / name));
    EXPECT_TRUE(tell(merge_runs(std::move(parts)), reports).empty());
    return read_check(folder / name);
  };
  const CheckResults two = written("two.jsonl", {ran(folder, "1/3"), ran(folder, "2/3")});
  EXPECT_EQ(two.problems.size(), 1u) << "it says itself that it isn't all";
  const MergedRun all = merge_runs({two, ran(folder, "3/3")});
  EXPECT_EQ(facts(all.verdicts), facts(whole.verdicts));
  EXPECT_EQ(all.info.parts.size(), 3u);
}

TEST(Merge, RefusesWhatIsOfNoOneRun) {
  const Folder folder;
  const CheckResults whole = ran(folder, "");
  const auto complaint_about = [&](CheckResults other) {
    other.name = "other.jsonl";
    const std::string message = message_of<UserError>([&] { merge_runs({whole, other}); });
    EXPECT_EQ(message.find("other.jsonl: "), 0u) << message;
    return message;
  };
  EXPECT_NE(complaint_about(ran(folder, "1/2", kBoth, {"seq=4 dim=4"})), "");
  CheckResults changed = whole;
  changed.header.erase("selection");
  EXPECT_NE(complaint_about(changed), "");
  for (const std::int64_t number : {0, -1, 7}) {
    changed = whole;
    changed.verdicts.front().number = number;
    EXPECT_NE(complaint_about(changed), "") << number;
  }
  changed = whole;
  changed.verdicts.front().backend = "nobody";
  EXPECT_NE(complaint_about(changed), "");
  changed = whole;
  changed.header["selection"]["verdicts"]["example"] = 99;
  EXPECT_NE(complaint_about(changed), "");
}

}  // namespace
}  // namespace attest
