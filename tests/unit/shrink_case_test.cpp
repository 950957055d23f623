// Shrinking with a backend as the judge: what is left still fails, and a right backend never does.
#include "harness/search/shrink_case.h"

#include "tests/faulty/faulty.h"
#include "tests/unit/helpers.h"

namespace attest {
namespace {

TEST(ShrinkCase, WhatIsLeftStillFailsInTheSameOption) {
  const BackendSet wrong(faulty::faulty_backends(), {"softcap_dropped"}, {1, ""});
  Backend& backend = *wrong.all().front();
  const Case source = case_from_line("batch=2 heads=4/2 seq=9x12 dim=8 softcap=0.1 sinks mask=bool:BHQK:random(0.5)");
  ASSERT_EQ(check_line(source, backend, 1).status, Status::fail);
  const ShrunkCase small = shrink_case(source, backend, 1, 60);
  EXPECT_TRUE(small.finished);
  EXPECT_GT(small.tried, 0);
  EXPECT_EQ(small.verdict.status, Status::fail);
  EXPECT_EQ(small.verdict.case_line, small.source.label);
  EXPECT_TRUE(small.source.problem.call.softcap);
  EXPECT_FALSE(small.source.problem.call.mask);
  EXPECT_FALSE(small.source.problem.call.sinks);
  EXPECT_EQ(small.source.problem.call.batch, 1);
}

TEST(ShrinkCase, WithoutTimeTheCaseStaysAsItIs) {
  const BackendSet wrong(faulty::faulty_backends(), {"softcap_dropped"}, {1, ""});
  const Case source = case_from_line("heads=2 seq=9 dim=8 softcap=0.1");
  const ShrunkCase small = shrink_case(source, *wrong.all().front(), 1, 0);
  EXPECT_FALSE(small.finished);
  EXPECT_EQ(small.source.label, source.label);
  EXPECT_EQ(small.verdict.status, Status::fail);
}

TEST(ShrinkCase, ALineOfARightBackendPasses) {
  const BackendSet right(registered_backends(), {"example"}, {1, ""});
  EXPECT_EQ(check_line(case_from_line("seq=4 dim=4 softcap=2"), *right.all().front(), 1).status, Status::pass);
}

}  // namespace
}  // namespace attest
