// What verdicts come to: the answer, the table, groups with their cases.
#include "harness/report/run_tally.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/unit/report_run.h"

namespace attest {
namespace {

Verdict passing(const std::string& backend, const std::string& line, double error) {
  Verdict v = verdict_of(backend, Status::pass, line);
  v.error_over_bound = error;
  return v;
}

TEST(RunTally, AnswersWhetherItIsRight) {
  RunTally tally;
  EXPECT_EQ(tally.answer({}, 0).text(), "nothing proved: no case ran; 0 pass, 0 fail, 0 refused, 0 inconclusive");
  tally.add(verdict_of("good", Status::refused, "seq=1 dim=1", "", "too short"));
  EXPECT_EQ(tally.answer({}, 0).text(),
            "nothing proved: every backend refused everything; 0 pass, 0 fail, 1 refused, 0 inconclusive");
  tally.add(verdict_of("good", Status::inconclusive, "seq=2 dim=1", "", "too wide"));
  EXPECT_EQ(tally.answer({}, 0).text(),
            "nothing proved: what ran is inconclusive; 0 pass, 0 fail, 1 refused, 1 inconclusive");
  tally.add(passing("good", "seq=4 dim=4", 0.5));
  EXPECT_EQ(tally.answer({}, 0).text(), "right: good; 1 pass, 0 fail, 1 refused, 1 inconclusive");
  EXPECT_EQ(tally.answer({}, 0).severity, Severity::good);
  EXPECT_EQ(tally.answer({}, 2).text(),
            "wrong: no case, but the run has 2 complaints, below; 1 pass, 0 fail, 1 refused, 1 inconclusive");
  Ending early;
  early.interrupted = true;
  early.verdicts_wanted = 9;
  EXPECT_EQ(tally.answer(early, 0).text(),
            "interrupted: nothing wrong until then; 1 pass, 0 fail, 1 refused, 1 inconclusive; 3 of 9 verdicts");
  tally.add(verdict_of("bad", Status::crashed, "seq=4 dim=4", "crashed"));
  tally.add(verdict_of("bad", Status::suspect, "seq=5 dim=4", "suspect"));
  tally.add(verdict_of("bad", Status::fail, "seq=6 dim=4", "outside"));
  EXPECT_EQ(tally.answer({}, 0).text(),
            "wrong: bad; right: good; 1 pass, 3 fail (1 suspect, 1 crashed), 1 refused, 1 inconclusive");
  EXPECT_EQ(tally.answer({}, 0).severity, Severity::bad);
}

TEST(RunTally, CountsConventionsBesidePasses) {
  RunTally tally;
  tally.add(verdict_of("peer", Status::convention, "seq=4 dim=4", "", "hidden_nan=leaks"));
  EXPECT_EQ(tally.answer({}, 0).text(), "right: peer; 0 pass, 1 convention, 0 fail, 0 refused, 0 inconclusive");
  EXPECT_EQ(tally.answer({}, 0).severity, Severity::good);
  ASSERT_EQ(tally.convention().size(), 1u);
  EXPECT_EQ(tally.convention()[0].name, "peer: hidden_nan=leaks");
  EXPECT_NE(tally.backends().printed(TableFormat::csv).find("pass,convention,fail"), std::string::npos);
}

TEST(RunTally, SaysWhereLittleIsProved) {
  RunTally tally;
  tally.add(verdict_of("coarse", Status::weak, "seq=4 dim=4", "", "proves little"));
  EXPECT_EQ(tally.answer({}, 0).text(),
            "nothing proved: what passed is weak, most of its bounds are as large as the values; "
            "0 pass, 1 weak, 0 fail, 0 refused, 0 inconclusive");
  EXPECT_EQ(tally.answer({}, 0).severity, Severity::doubtful);
  tally.add(passing("coarse", "seq=5 dim=4", 0.5));
  EXPECT_EQ(tally.answer({}, 0).text(), "right: coarse; 1 pass, 1 weak, 0 fail, 0 refused, 0 inconclusive");
  ASSERT_EQ(tally.weak().size(), 1u);
  EXPECT_EQ(tally.weak()[0].name, "coarse: proves little");
  tally.add(verdict_of("coarse", Status::convention, "seq=6 dim=4", "", "hidden_nan=leaks"));
  EXPECT_NE(tally.backends().printed(TableFormat::csv).find("pass,weak,convention,fail"), std::string::npos);
  EXPECT_NE(tally.backends().printed(TableFormat::csv).find("coarse,1,1,1,0"), std::string::npos);
}

/// Of mistakes that fit one case alike the one that fits them all is told.
TEST(RunTally, TellsTheMistakeThatFitsMostFailures) {
  RunTally tally;
  for (const char* line : {"seq=4 dim=4", "seq=5 dim=4", "seq=6 dim=4"}) {
    Verdict v = verdict_of("bad", Status::fail, line, "outside the bound");
    v.mistakes = {"causal_ignored"};
    if (v.case_line == "seq=5 dim=4") v.mistakes = {"window_ignored", "causal_ignored"};
    if (v.case_line == "seq=6 dim=4") v.mistakes.clear();
    tally.add(v);
  }
  EXPECT_EQ(tally.likenesses(),
            std::vector<std::string>{"bad, in 2 of 3 failing cases: the output is what one gets with causal ignored"});
}

/// A green word must not hide that hardly anything ran.
TEST(RunTally, SaysWhatShareWasRunWhenItIsSmall) {
  RunTally tally;
  for (int n = 0; n < 2; ++n) tally.add(passing("narrow", "seq=4 dim=" + std::to_string(4 + n), 0.5));
  for (int n = 0; n < 704; ++n) tally.add(verdict_of("narrow", Status::refused, "seq=1 dim=1", "", "no such option"));
  for (int n = 0; n < 20; ++n) tally.add(passing("wide", "seq=4 dim=4", 0.5));
  for (int n = 0; n < 10; ++n) tally.add(verdict_of("wide", Status::refused, "seq=1 dim=1", "", "no such option"));
  EXPECT_EQ(tally.answer({}, 0).text(),
            "right: narrow in the 2 of 706 cases that it does, wide; 22 pass, 0 fail, 714 refused, 0 inconclusive");
  EXPECT_EQ(tally.refusers(), std::vector<std::string>{"narrow"});
}

/// As many columns of numbers as add up to the verdicts.
TEST(RunTally, HasARowForEachBackend) {
  RunTally tally;
  tally.add(passing("good", "seq=4 dim=4", 0.25));
  tally.add(passing("good", "seq=8 dim=4", 0.5));
  tally.add(verdict_of("bad", Status::fail, "seq=4 dim=4", "outside"));
  EXPECT_EQ(tally.backends().printed(TableFormat::csv),
            "backend,pass,fail,refused,inconclusive,error/bound,largest at\n"
            "bad,0,1,0,0,,\n"
            "good,2,0,0,0,0.5,seq=8 dim=4\n");
  Verdict waived = verdict_of("good", Status::suspect, "seq=9 dim=4", "suspect");
  waived.waiver = "a library of old";
  tally.add(waived);
  EXPECT_EQ(tally.backends().printed(TableFormat::csv),
            "backend,pass,fail,refused,inconclusive,waived,error/bound,largest at\n"
            "bad,0,1,0,0,0,,\n"
            "good,2,0,0,0,1,0.5,seq=8 dim=4\n");
  EXPECT_EQ(tally.verdicts(), 4u);
}

TEST(RunTally, GroupsByReasonWithCases) {
  RunTally tally;
  for (const char* line : {"seq=1 dim=1", "seq=2 dim=1"})
    tally.add(verdict_of("good", Status::inconclusive, line, "", "too wide"));
  tally.add(verdict_of("good", Status::refused, "seq=3 dim=1", "", "no"));
  Verdict waived = verdict_of("good", Status::suspect, "seq=9 dim=4", "suspect");
  waived.waiver = "known";
  tally.add(waived);
  const auto inconclusive = tally.inconclusive();
  ASSERT_EQ(inconclusive.size(), 1u);
  EXPECT_EQ(inconclusive[0].name, "good: too wide");
  EXPECT_EQ(inconclusive[0].cases, (std::vector<std::string>{"seq=1 dim=1", "seq=2 dim=1"}));
  ASSERT_EQ(tally.refused().size(), 1u);
  EXPECT_EQ(tally.refused()[0].cases.size(), 1u);
  ASSERT_EQ(tally.waived().size(), 1u);
  EXPECT_EQ(tally.waived()[0].name, "good: known");
  EXPECT_TRUE(tally.failures().empty());
  const Verdict failure = verdict_of("bad", Status::fail, "seq=8 dim=4", "outside");
  tally.add(failure);
  tally.add_small(failure, verdict_of("bad", Status::fail, "seq=1 dim=1", "outside"));
  const auto failures = tally.failures();
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_EQ(failures[0].name, "bad: outside");
  EXPECT_EQ(failures[0].verdicts.size(), 1u);
  EXPECT_EQ(failures[0].small.size(), 1u);
}

/// The worst of all that was compared, failures among them; the rows' worst are of what doesn't fail.
TEST(RunTally, KnowsTheWorst) {
  RunTally tally;
  EXPECT_FALSE(tally.worst().has_value());
  tally.add(passing("good", "seq=4 dim=4", 0.5));
  Verdict failure = verdict_of("good", Status::fail, "seq=5 dim=4", "outside");
  failure.error_over_bound = 7;
  tally.add(failure);
  EXPECT_EQ(tally.worst(), 7.0);
  EXPECT_NE(tally.backends().printed(TableFormat::csv).find(",0.5,seq=4 dim=4"), std::string::npos);
}

TEST(RunTally, ShowsHowErrorsLieWhereCasesAreMany) {
  RunTally tally;
  for (int n = 1; n <= 4; ++n) tally.add(passing("good", "seq=" + std::to_string(n) + " dim=4", 0.1 * n));
  EXPECT_EQ(tally.distributions().rows(), 0u);
  tally.add(passing("good", "seq=5 dim=4", 0.5));
  EXPECT_EQ(
      tally.distributions().printed(TableFormat::csv),
      "error/bound in,backend,type,cases,median,99%,largest,ulps of o (largest)\nsmoke,good,f32,5,0.3,0.4,0.5,-\n");
}

TEST(RunTally, CountsBits) {
  RunTally tally;
  EXPECT_EQ(tally.bits().rows(), 0u);
  Verdict one = passing("good", "seq=4 dim=4", 0.5), other = passing("good", "seq=5 dim=4", 0.5);
  one.bitwise = BitwiseFacts{true, {}, {}};
  other.bitwise = BitwiseFacts{false, {}, {}};
  tally.add(one);
  tally.add(other);
  EXPECT_EQ(tally.bits().printed(TableFormat::csv),
            "the same bits,asked,cases,first that differs\ngood,in every run,1 of 2,seq=5 dim=4\n");
}

}  // namespace
}  // namespace attest
