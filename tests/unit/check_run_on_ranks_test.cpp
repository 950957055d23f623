// A run of `check` on several ranks is the run of one process.
#include <algorithm>
#include <fstream>

#include "harness/report/verdict_json.h"
#include "harness/run/check_run.h"
#include "tests/faulty/faulty.h"
#include "tests/unit/helpers.h"
#include "tests/unit/scratch_folder.h"
#include "tests/unit/thread_ranks.h"

namespace attest {
namespace {

const std::vector<std::string> kLines = {"seq=3 dim=2", "seq=40 dim=8 softcap=0.1", "seq=5 dim=2",
                                         "seq=6 dim=8 softcap=0.1", "seq=7 dim=2"};

/// A verdict without its times.
std::string text_of(Verdict verdict) {
  verdict.seconds = {};
  return verdict_to_json(verdict).dump();
}

/// What a report is told.
struct Told {
  std::vector<std::string> verdicts, arrivals, small;
  Counts counts;
  std::size_t wanted = 0;
};

class Keeper : public Report {
 public:
  explicit Keeper(Told& told) : told_(told) {}
  void begin(const RunInfo& info) override { told_.wanted = info.verdicts; }
  void arrival(const Verdict& v) override { told_.arrivals.push_back(text_of(v)); }
  void verdict(const Verdict& v) override { told_.verdicts.push_back(text_of(v)); }
  void shrunk(const Verdict& failure, const Verdict&) override { told_.small.push_back(failure.case_line); }
  void end(const Counts& counts, double, const std::vector<std::string>&) override { told_.counts = counts; }

 private:
  Told& told_;
};

BackendSet backends() { return {faulty::faulty_backends(), {"softcap_dropped", "correct"}, {1, ""}}; }

/// On so many ranks; 0: by itself.
Told run_on(int size, const CheckSettings& settings = {}, const std::string& earlier_file = "",
            std::vector<std::string> lines = kLines) {
  Told told;
  const std::vector<BackendSet> no_others;
  const auto body = [&](Ranks* ranks) {
    const BackendSet set = backends();
    const bool leads = !ranks || ranks->rank() == 0;
    std::vector<std::unique_ptr<Report>> reports;
    if (leads) reports.push_back(std::make_unique<Keeper>(told));
    EarlierRun earlier(settings.conditions);
    if (leads && !earlier_file.empty()) earlier = EarlierRun(earlier_file, settings.conditions);
    CheckRun run(settings, load_cases({{}, {}, lines}), set, no_others, std::move(earlier), std::move(reports));
    const CheckOutcome outcome = ranks ? run.run(*ranks) : run.run();
    EXPECT_FALSE(outcome.still_running);
    EXPECT_FALSE(outcome.interrupted);
  };
  if (size == 0) {
    body(nullptr);
  } else {
    on_ranks(size, [&](Ranks& ranks) { body(&ranks); });
  }
  return told;
}

TEST(CheckRunOnRanks, SaysWhatARunByItselfSays) {
  const Told alone = run_on(0);
  ASSERT_EQ(alone.verdicts.size(), 10u);
  ASSERT_EQ(alone.counts.fail, 2u);
  EXPECT_TRUE(alone.arrivals.empty());
  for (const int size : {1, 2, 4}) {
    const Told shared = run_on(size);
    EXPECT_EQ(shared.verdicts, alone.verdicts) << size << " ranks";
    EXPECT_EQ(shared.small, alone.small) << size << " ranks";
    EXPECT_EQ(shared.counts.fail, 2u);
    EXPECT_EQ(shared.wanted, 10u);
    std::vector<std::string> come = shared.arrivals, told = shared.verdicts;
    std::sort(come.begin(), come.end());
    std::sort(told.begin(), told.end());
    EXPECT_EQ(come, told) << "each has come once";
  }
}

TEST(CheckRunOnRanks, TheCostliestComesFirst) {
  const Told shared = run_on(1);
  ASSERT_FALSE(shared.arrivals.empty());
  EXPECT_NE(shared.arrivals.front().find("seq=40"), std::string::npos) << shared.arrivals.front();
}

TEST(CheckRunOnRanks, AShardIsShared) {
  CheckSettings settings;
  settings.shard = "2/2";
  EXPECT_EQ(run_on(3, settings).verdicts, run_on(0, settings).verdicts);
}

TEST(CheckRunOnRanks, WithFailFastTheRestIsNotBegun) {
  CheckSettings settings;
  settings.fail_fast = true;
  settings.shrink = false;
  std::vector<std::string> lines = kLines;
  for (int n = 10; n < 60; ++n)
    lines.push_back("dim=2 seq=" + std::to_string(n % 40 + 1) + " seed=" + std::to_string(n));
  const Told shared = run_on(2, settings, "", lines);
  EXPECT_GE(shared.counts.fail, 1u);
  EXPECT_LT(shared.verdicts.size(), 110u);
}

/// The verdict of a case that had been begun is kept, also where another rank checks all of the case again.
TEST(CheckRunOnRanks, GoesOnFromAnEarlierRun) {
  const Folder folder;
  const std::string path = (folder / "some.jsonl").string();
  const Told alone = run_on(0);
  {
    std::ofstream file(path);
    file << R"({"kind":"run","schema":2,"conditions":{"program":"this"}})" << '\n';
    for (const std::size_t n : {0u, 1u, 4u, 7u}) {
      const std::size_t status = alone.verdicts[n].find(R"("repro":")");
      std::string before = alone.verdicts[n];
      file << before.replace(status, 9, R"("repro":"of before: )") << '\n';
    }
  }
  CheckSettings settings;
  settings.conditions = {{"program", "this"}};
  // A process by itself tells of a case first what it remembers.
  std::vector<std::string> alone_again = run_on(0, settings, path).verdicts;
  std::sort(alone_again.begin(), alone_again.end());
  for (const int size : {1, 3}) {
    const Told shared = run_on(size, settings, path);
    std::vector<std::string> sorted = shared.verdicts;
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(sorted, alone_again) << size << " ranks";
    EXPECT_EQ(std::count_if(shared.verdicts.begin(), shared.verdicts.end(),
                            [](const std::string& v) { return v.find("of before") != std::string::npos; }),
              4);
  }
}

}  // namespace
}  // namespace attest
