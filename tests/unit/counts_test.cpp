#include "harness/report/counts.h"

#include <gtest/gtest.h>

namespace attest {
namespace {

TEST(Counts, EveryVerdictIsAPassAFailureOrSkipped) {
  Counts counts;
  for (const Status status : values_of<Status>()) {
    Verdict verdict;
    verdict.status = status;
    counts.add(verdict);
  }
  EXPECT_EQ(counts.pass, 1u);
  EXPECT_EQ(counts.failures(), 5u);  // fail, flaky, suspect, crashed, timeout
  EXPECT_EQ(counts.skipped(), 2u);   // refused, inconclusive
  EXPECT_EQ(counts.passed(), 3u);    // pass, convention, weak
  EXPECT_EQ(counts.proved(), 2u);    // pass, convention
  EXPECT_EQ(counts.passed() + counts.failures() + counts.skipped(), values_of<Status>().size());
}

TEST(Counts, AWaivedSuspectIsNoFailure) {
  Counts counts;
  Verdict verdict;
  verdict.status = Status::suspect;
  verdict.waiver = "its roundings are not independent";
  counts.add(verdict);
  EXPECT_EQ(counts.suspect, 1u);
  EXPECT_EQ(counts.failures(), 0u);
  EXPECT_EQ(counts.skipped(), 1u);
  verdict.status = Status::fail;  // which nothing waives
  counts.add(verdict);
  EXPECT_EQ(counts.failures(), 1u);
}

}  // namespace
}  // namespace attest
