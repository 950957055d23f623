// The worst elements of a case, with where their bounds come from.
#include "harness/trace/explanation.h"

#include "tests/faulty/cheats/cheats.h"
#include "tests/faulty/faulty.h"
#include "tests/unit/helpers.h"

namespace attest {
namespace {

struct Explained {
  Verdict verdict;
  std::string text;
};

Explained explained(const BackendSet& set, const std::string& line, int elements) {
  testing::internal::CaptureStdout();
  Explained result;
  result.verdict = explain(case_from_line(line), *set.all().front(), 1, elements);
  std::fflush(stdout);
  result.text = testing::internal::GetCapturedStdout();
  return result;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(Explanation, ShowsAsManyElementsAsAskedFor) {
  const BackendSet right(registered_backends(), {"example"}, {1, ""});
  const Explained two = explained(right, "seq=5 dim=3 causal", 2);
  EXPECT_EQ(two.verdict.status, Status::pass);
  EXPECT_EQ(count(two.text, "  got       "), 2u) << two.text;
  EXPECT_EQ(count(two.text, "the bound, term by term"), 2u);
  EXPECT_EQ(count(two.text, "   FAIL"), 0u);
  EXPECT_EQ(count(explained(right, "seq=5 dim=3 causal", 7).text, "  got       "), 7u);
}

TEST(Explanation, TheWorstElementOfAWrongResultFails) {
  const BackendSet wrong(faulty::faulty_backends(), {"softcap_dropped"}, {1, ""});
  const Explained one = explained(wrong, "seq=5 dim=8 softcap=0.1", 1);
  EXPECT_EQ(one.verdict.status, Status::fail);
  EXPECT_EQ(count(one.text, "   FAIL"), 1u) << one.text;
  EXPECT_NE(one.text.find("keys seen 5 of 5: 0-4"), std::string::npos) << one.text;
}

TEST(Explanation, OfARefusalRunsNothing) {
  const BackendSet set(faulty::cheating_backends(), {"works_in_prepare"}, {1, ""});
  const Explained refused = explained(set, "seq=4 dim=4 out=o,lse", 1);
  EXPECT_EQ(refused.verdict.status, Status::refused);
  EXPECT_EQ(count(refused.text, "  got "), 0u);
}

}  // namespace
}  // namespace attest
