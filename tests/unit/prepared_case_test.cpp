// One case made ready, and the verdict on each backend.
#include "harness/verdict/prepared_case.h"

#include "tests/faulty/faulty.h"
#include "tests/unit/helpers.h"

namespace attest {
namespace {

TEST(Verdicts, MistakesOfABackendAreFailuresNotCrashes) {
  const BackendSet faulty(faulty::faulty_backends(), {"throws_now_and_then", "no_output"}, {1, ""});
  const Case one = case_from_line("seq=3 dim=2");
  const PreparedCase prepared(one, faulty.all(), 1);
  for (Backend* backend : faulty.all()) {
    const Verdict verdict = prepared.check(*backend);
    EXPECT_EQ(verdict.status, Status::fail);
    EXPECT_NE(verdict.repro.find("seq=3 dim=2"), std::string::npos);
  }
}

}  // namespace
}  // namespace attest
