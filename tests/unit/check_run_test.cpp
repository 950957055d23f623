// A run of `check` as an object: which cases meet which backends, in which order, and what it comes to.
#include "harness/run/check_run.h"

#include <cstdlib>
#include <sstream>

#include "harness/base/machine.h"
#include "harness/report/verdict_json.h"
#include "tests/faulty/around.h"
#include "tests/faulty/faulty.h"
#include "tests/unit/helpers.h"
#include "tests/unit/run_lines.h"
#include "tests/unit/scratch_folder.h"

namespace attest {
namespace {

BackendSet example() { return {registered_backends(), {"example"}, {1, ""}}; }
BackendSet wrong() { return {faulty::faulty_backends(), {"softcap_dropped"}, {1, ""}}; }

const std::vector<std::string> kLines = {"seq=3 dim=2", "seq=4 dim=2", "seq=5 dim=2", "seq=6 dim=2", "seq=7 dim=2"};

std::vector<std::string> lines_of(const Ran& run) {
  std::vector<std::string> lines;
  for (const Verdict& v : run.verdicts) lines.push_back(v.case_line);
  return lines;
}

TEST(CheckRun, TakesEveryCaseInOrder) {
  const Ran run = run_lines(example(), kLines);
  EXPECT_EQ(lines_of(run), kLines);
  EXPECT_EQ(run.outcome.counts.pass, 5u);
  EXPECT_EQ(run.begun.at(0).cases, 5u);
  EXPECT_EQ(run.begun.size(), 1u);
  EXPECT_EQ(run.ended, 1);
  EXPECT_FALSE(run.outcome.interrupted);
}

TEST(CheckRun, BeginsNothingBehindItsDeadline) {
  CheckSettings settings;
  settings.deadline = std::chrono::steady_clock::now() + std::chrono::hours(1);
  EXPECT_EQ(run_lines(example(), kLines, settings).outcome.counts.pass, 5u);
  settings.deadline = std::chrono::steady_clock::now();
  const Ran run = run_lines(example(), kLines, settings);
  EXPECT_EQ(run.outcome.counts.pass, 0u);
  EXPECT_EQ(run.ended, 1) << "the reports are complete";
  EXPECT_FALSE(run.outcome.interrupted);
}

TEST(CheckRun, LooksForStatementsWhereItIsAsked) {
  CheckSettings settings;
  settings.shrink = false;
  settings.explain_seconds = 0;
  const Ran run = run_lines(wrong(), {"seq=4 dim=2 softcap=0.1"}, settings);
  EXPECT_GT(run.outcome.counts.failures(), 0u);
  EXPECT_TRUE(run.outcome.right_if.empty());
}

/// The costliest case, the fifth, is the first part's; the next two go to the others, then to the third and second
/// again.
TEST(CheckRun, ShardsAreInOrderAndTogetherAll) {
  CheckSettings settings;
  settings.shard = "2/3";
  const Ran run = run_lines(example(), kLines, settings);
  EXPECT_EQ(lines_of(run), (std::vector<std::string>{"seq=3 dim=2", "seq=6 dim=2"}));
  EXPECT_EQ(run.verdicts[1].number, 4) << "among all cases, from 1";
  EXPECT_EQ(run.begun.at(0).cases, 2u);
  EXPECT_EQ(run.begun.at(0).selection.cases, 5u);
  EXPECT_EQ(run.begun.at(0).selection.shard, "2/3");
  EXPECT_EQ(run.begun.at(0).selection.verdicts, (std::map<std::string, std::size_t>{{"example", 5}}));
  settings.shard = "";
  EXPECT_EQ(run_lines(example(), kLines, settings).begun.at(0).selection.fingerprint,
            run.begun.at(0).selection.fingerprint);
  settings.filter = "seq=3";
  EXPECT_NE(run_lines(example(), kLines, settings).begun.at(0).selection.fingerprint,
            run.begun.at(0).selection.fingerprint);
  settings.filter = "";
  for (const char* nonsense : {"0/3", "4/3", "1", "1/0", "a/b", "1/3x"}) {
    settings.shard = nonsense;
    EXPECT_THROW(run_lines(example(), kLines, settings), UserError) << nonsense;
  }
}

TEST(CheckRun, AFilterSeesBackendAndLine) {
  CheckSettings settings;
  settings.filter = "^example seq=[45] ";
  EXPECT_EQ(lines_of(run_lines(example(), kLines, settings)), (std::vector<std::string>{"seq=4 dim=2", "seq=5 dim=2"}));
  settings.filter = "no such backend";
  EXPECT_TRUE(run_lines(example(), kLines, settings).verdicts.empty());
  settings.filter = "(";
  EXPECT_THROW(run_lines(example(), kLines, settings), UserError);
}

/// The example, which says that it adds up in float64. Of every type but f64 this is false; in bf16, which rounds the
/// result more than the sums, no case of `smoke` fails for it.
class SaysWide : public faulty::BackendAround {
 public:
  SaysWide() : BackendAround({"says_wide", "a test", "CPU, 1 thread"}, faulty::make_example()) {}
  Arithmetic arithmetic(const Call& call) const override {
    Arithmetic a = BackendAround::arithmetic(call);
    a.accumulator = a.stored_weights = a.stored_scores = DType::f64;
    return a;
  }
};

TEST(CheckRun, SaysNothingOfStatementsOfABackendWithFailingCases) {
  const BackendEntry entries[] = {{"says_wide", [](const Context&) { return std::make_unique<SaysWide>(); }, ""}};
  const BackendSet backends(entries, {"says_wide"}, {1, ""});
  const CheckOutcome outcome = run_cases(backends, load_cases({{"smoke"}, {}, {}}), without_shrinking()).outcome;
  ASSERT_GT(outcome.counts.fail, 0u);
  EXPECT_EQ(outcome.problems, std::vector<std::string>{}) << "in bf16 no case fails, and there it is silent, too";
  ASSERT_EQ(outcome.right_if.size(), 1u);
  EXPECT_EQ(outcome.right_if[0].backend, "says_wide");
  EXPECT_TRUE(outcome.right_if[0].statement.starts_with("accumulator=f32 for calls in "))
      << outcome.right_if[0].statement;
  EXPECT_EQ(outcome.right_if[0].code, "arithmetic.accumulator = DType::f32;");
}

TEST(CheckRun, EndsAtTheFirstFailureWhenAsked) {
  const std::vector<std::string> lines = {"seq=3 dim=2", "seq=4 dim=8 softcap=0.1", "seq=5 dim=8 softcap=0.1"};
  CheckSettings settings = without_shrinking();
  EXPECT_EQ(run_lines(wrong(), lines, settings).outcome.counts.fail, 2u);
  settings.fail_fast = true;
  const Ran run = run_lines(wrong(), lines, settings);
  EXPECT_EQ(run.outcome.counts.fail, 1u);
  EXPECT_EQ(run.verdicts.size(), 2u);
  EXPECT_EQ(run.ended, 1);
}

TEST(CheckRun, TheFirstFailuresOfACauseSayWhereTheyAreWrong) {
  std::vector<std::string> lines;
  for (int keys = 2; keys < 12; ++keys) lines.push_back("seq=" + std::to_string(keys) + " dim=8 softcap=0.1");
  CheckSettings settings = without_shrinking();
  const Ran run = run_lines(wrong(), lines, settings);
  ASSERT_EQ(run.outcome.counts.fail, 10u);
  std::size_t mapped = 0;
  for (const Verdict& v : run.verdicts) mapped += v.error_map.has_value();
  EXPECT_EQ(mapped, 8u) << "a file of thousands of failures stays small";
}

TEST(CheckRun, MakesItsFailuresSmall) {
  const Ran run = run_lines(wrong(), {"batch=2 heads=2 seq=9 dim=8 softcap=0.1"});
  ASSERT_EQ(run.small.size(), 1u);
  EXPECT_EQ(run.small[0].first.case_line, "batch=2 heads=2 seq=9 dim=8 softcap=0.1");
  const Problem small = parse_case(run.small[0].second.case_line);
  EXPECT_TRUE(small.call.softcap);
  EXPECT_LE(small.call.batch * small.call.query_heads * small.call.query_length * small.call.key_dim, 4);
}

/// A run on `lines` that begins with what an earlier one is said to have found.
Ran go_on(const BackendSet& backends, const std::vector<std::string>& lines, const Verdict& before) {
  std::stringstream file;
  file << R"({"kind":"run","commit":")" << build_commit() << "\"}\n" << verdict_to_json(before).dump() << "\n";
  EarlierRun earlier;
  earlier.read(file, "earlier");
  return run_lines(backends, lines, {}, {}, std::move(earlier));
}

TEST(CheckRun, GoesOnFromAnEarlierRun) {
  Verdict before;
  before.case_line = "seq=4 dim=2";
  before.backend = "example";
  before.status = Status::crashed;  // what nobody would find again
  const Ran run = go_on(example(), kLines, before);
  EXPECT_EQ(run.outcome.counts.pass, 4u);
  EXPECT_EQ(run.outcome.counts.crashed, 1u);
  EXPECT_EQ(run.verdicts[1].status, Status::crashed);
}

TEST(CheckRun, WaiversAreThoseOfToday) {
  const Folder lists;
  std::filesystem::create_directories(lists / "correct");
  std::ofstream(lists / "correct/waivers") << "seq=4 *  # known since\n";
  setenv("ATTEST_LISTS", (lists / "").c_str(), 1);
  Verdict before;
  before.backend = "correct";
  before.status = Status::suspect;
  before.waiver = "known before";
  const BackendSet correct(faulty::faulty_backends(), {"correct"}, {1, ""});
  before.case_line = "seq=4 dim=2";
  const Ran listed = go_on(correct, {before.case_line}, before);
  before.case_line = "seq=5 dim=2";
  const Ran no_longer = go_on(correct, {before.case_line}, before);
  unsetenv("ATTEST_LISTS");
  EXPECT_EQ(listed.verdicts.at(0).waiver, "known since");
  EXPECT_EQ(listed.outcome.counts.failures(), 0u);
  EXPECT_EQ(no_longer.verdicts.at(0).waiver, "");
  EXPECT_EQ(no_longer.outcome.counts.failures(), 1u);
}

}  // namespace
}  // namespace attest
