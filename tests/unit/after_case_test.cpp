// Failures that an earlier case caused: they say which, with both lines, and shrink as a pair.
#include "harness/search/after_case.h"

#include <set>
#include <sstream>

#include "harness/report/verdict_json.h"
#include "harness/search/fuzz.h"
#include "harness/search/shrink_case.h"
#include "tests/faulty/keeping.h"
#include "tests/unit/helpers.h"
#include "tests/unit/run_lines.h"

namespace attest {
namespace {

Ran run(const std::string& name, const std::vector<std::string>& lines) {
  return run_lines(BackendSet(faulty::keeping_backends(), {name}, {1, ""}), lines);
}

const std::vector<std::string> kLines = {"seq=3 dim=5", "heads=2 seq=4x6 dim=8 softcap=2", "seq=9 dim=7",
                                         "heads=2 seq=4x8 dim=6 softcap=3", "seq=2 dim=3"};

TEST(AfterCase, AFailureNamesTheCaseThatCausedIt) {
  const Ran ran = run("name_of_element_count", kLines);
  ASSERT_EQ(ran.verdicts.size(), 5u);
  for (const std::size_t right : {0, 1, 2, 4}) EXPECT_EQ(ran.verdicts[right].status, Status::pass) << right;
  const Verdict& wrong = ran.verdicts[3];
  EXPECT_EQ(wrong.status, Status::fail);
  EXPECT_EQ(wrong.cause.kind, Cause::after_another_case) << wrong.reason;
  EXPECT_EQ(wrong.after, kLines[1]);
  EXPECT_NE(wrong.reason.find("wrong after '" + kLines[1] + "'"), std::string::npos) << wrong.reason;
  EXPECT_NE(wrong.repro.find("'" + kLines[1] + "' '" + kLines[3] + "'"), std::string::npos) << wrong.repro;
  for (const Verdict& v : run("honest_keeper", kLines).verdicts) EXPECT_EQ(v.status, Status::pass) << v.reason;
}

TEST(AfterCase, ThePairIsMadeSmall) {
  const Ran ran = run("name_of_element_count", kLines);
  ASSERT_EQ(ran.small.size(), 1u);
  const Verdict& small = ran.small[0].second;
  EXPECT_EQ(small.cause.kind, Cause::after_another_case) << small.reason;
  const Problem earlier = parse_case(small.after), later = parse_case(small.case_line);
  EXPECT_FALSE(earlier.call.softcap);
  EXPECT_FALSE(later.call.softcap);
  EXPECT_EQ(earlier.call.key_length * earlier.call.key_dim, later.call.key_length * later.call.key_dim);
  for (const Problem& p : {earlier, later}) {
    EXPECT_EQ(p.call.query_length * p.call.query_heads * p.call.value_dim, 1)
        << small.after << " | " << small.case_line;
  }
  EXPECT_FALSE(small.reason.empty());
}

/// Between the two come many others, so that they are no neighbours.
TEST(AfterCase, TheCauseIsFoundAmongMany) {
  std::vector<std::string> lines = {"heads=2 seq=4x6 dim=35"};
  for (int keys = 1; keys < 60; ++keys) lines.push_back("seq=3x" + std::to_string(keys) + " dim=11");
  lines.push_back("heads=2 seq=4x7 dim=30");
  const Ran ran = run("name_of_element_count", lines);
  EXPECT_EQ(ran.verdicts.back().cause.kind, Cause::after_another_case) << ran.verdicts.back().reason;
  EXPECT_EQ(ran.verdicts.back().after, lines.front());
}

TEST(AfterCase, WhatIsWrongByItselfStaysAsItIs) {
  const BackendSet backends(faulty::keeping_backends(), {"third_run"}, {1, ""});
  const Case source = case_from_line("seq=2 dim=2");
  PreparedCase prepared(source, backends.all(), 1);
  prepared.take_these_steps(steps_from_text("1:prepare 1:upload 1:run 1:run 1:run 1:download"));
  Verdict verdict = prepared.check(*backends.all().front());
  ASSERT_EQ(verdict.status, Status::fail);
  const Verdict before = verdict;
  find_origin(verdict, prepared, {}, [&] { return backends.fresh("third_run"); });
  EXPECT_EQ(verdict.cause, before.cause);
  EXPECT_EQ(verdict.reason, before.reason);
  EXPECT_TRUE(verdict.after.empty());
}

TEST(AfterCase, WhatNoCaseCausesIsToldAsRightInAFreshWorker) {
  const BackendSet backends(faulty::keeping_backends(), {"honest_keeper"}, {1, ""});
  const Case source = case_from_line("seq=2 dim=2"), other = case_from_line("seq=3 dim=2");
  const PreparedCase prepared(source, backends.all(), 1);
  Verdict verdict = prepared.check(*backends.all().front());
  verdict.status = Status::fail;  // as if by chance
  verdict.reason = "o is wrong";
  const Case* earlier[] = {&other};
  find_origin(verdict, prepared, earlier, [&] { return backends.fresh("honest_keeper"); });
  EXPECT_EQ(verdict.cause.kind, Cause::fresh_worker_only);
  EXPECT_NE(verdict.reason.find("o is wrong"), std::string::npos);
}

/// Every second backend that is made is wrong, however fresh.
TEST(AfterCase, WhatIsWrongByChanceIsFlakyAndSaysHowOften) {
  const BackendSet wrong(faulty::keeping_backends(), {"third_run"}, {1, ""});
  const BackendSet right(faulty::keeping_backends(), {"honest_keeper"}, {1, ""});
  const Case source = case_from_line("seq=2 dim=2");
  PreparedCase prepared(source, wrong.all(), 1);
  prepared.take_these_steps(steps_from_text("1:prepare 1:upload 1:run 1:run 1:run 1:download"));
  Verdict verdict = prepared.check(*wrong.all().front());
  ASSERT_EQ(verdict.status, Status::fail);
  int made = 0;
  find_origin(verdict, prepared, {},
              [&] { return ++made % 2 == 0 ? wrong.fresh("third_run") : right.fresh("honest_keeper"); });
  EXPECT_EQ(verdict.status, Status::flaky);
  EXPECT_EQ(verdict.cause.kind, Cause::not_every_time);
  ASSERT_TRUE(verdict.repeats);
  EXPECT_EQ(verdict.repeats->wrong, 3);  // itself, the second and the fourth
  EXPECT_EQ(verdict.repeats->runs, 6);
  EXPECT_TRUE(is_failure(verdict));
  EXPECT_TRUE(verdict.reason.starts_with("wrong in 3 of 6 runs of this case")) << verdict.reason;
  const std::optional<Verdict> read = verdict_from_json(verdict_to_json(verdict));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->status, Status::flaky);
  EXPECT_EQ(read->repeats->wrong, 3);
}

TEST(AfterCase, FuzzingTellsPairsFromFailuresAndWritesNoLineTwice) {
  const BackendSet backends(faulty::keeping_backends(), {"name_of_element_count"}, {1, ""});
  FuzzSettings settings;
  settings.seconds = 120;
  settings.count = 120;
  settings.seed = 3;
  settings.max_operations = 2e4;
  settings.fresh = [&] { return backends.fresh("name_of_element_count"); };
  const FuzzResult result = fuzz(*backends.all().front(), settings, [](const FuzzResult&) {});
  ASSERT_GT(result.failed, 0u);
  int pairs = 0;
  for (const Finding& finding : result.findings) {
    EXPECT_TRUE(is_failure(finding.small.verdict));
    EXPECT_FALSE(finding.small.verdict.reason.empty());
    pairs += !finding.small.verdict.after.empty();
  }
  EXPECT_GT(pairs, 0);
  std::ostringstream out;
  write_findings(out, result.findings);
  std::set<std::string> lines;
  std::istringstream in(out.str());
  for (std::string line; std::getline(in, line);)
    EXPECT_TRUE(lines.insert(line.substr(0, line.find("  #"))).second) << line;
}

TEST(InterleavedPlans, DifferInStridesMaskAndType) {
  for (const char* name : {"name_without_strides", "name_without_type", "name_without_mask"}) {
    const BackendSet wrong(faulty::keeping_backends(), {name}, {1, ""});
    int found = 0;
    for (int seed = 0; seed < 40; ++seed) {
      const Case source =
          case_from_line("heads=2 seq=3x5 dim=4 mask=bool:11QK:random(0.5) seed=" + std::to_string(seed));
      const BackendSet fresh(faulty::keeping_backends(), {name}, {1, ""});
      found += is_failure(check_line(source, *fresh.all().front(), 1));
    }
    EXPECT_GT(found, 0) << name;
    EXPECT_LT(found, 40) << name;
  }
}

}  // namespace
}  // namespace attest
