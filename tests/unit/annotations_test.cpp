// Commands for GitHub: one a line, whatever names and reasons hold.
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/report_run.h"

namespace attest {
namespace {

std::string annotations_of(const std::vector<Verdict>& verdicts, const std::vector<std::string>& problems,
                           const CasePlace& place) {
  testing::internal::CaptureStdout();
  const auto report = github_annotations(stdout, [&](const Verdict&) { return place; });
  report->begin({});
  for (const Verdict& verdict : verdicts) report->verdict(verdict);
  report->end({}, 1, problems);
  return testing::internal::GetCapturedStdout();
}

TEST(GithubAnnotations, NameTheLineOfEachFailure) {
  EXPECT_EQ(annotations_of({verdict_of("good", Status::pass, "seq=4 dim=4"),
                            verdict_of("good", Status::inconclusive, "seq=4 dim=4", "", "too wide"),
                            verdict_of("bad", Status::fail, "seq=4 dim=4", "outside", "o is wrong")},
                           {"a list is old"}, {"tests/cases/smoke.cases", 12}),
            "::error file=tests/cases/smoke.cases,line=12,title=attest%3A bad fail::seq=4 dim=4: o is wrong; repeat: "
            "attest check --backend bad 'seq=4 dim=4'\n"
            "::error title=attest::a list is old\n");
  EXPECT_EQ(annotations_of({}, {}, {}), "");
}

/// No name begins a command of its own, ends its property or adds one.
TEST(GithubAnnotations, EncodeWhatIsHostile) {
  Verdict v = verdict_of("bad", Status::fail, "x.safetensors", "outside", "100%\n::add-mask::a\r\x1b[2J");
  v.repro = "attest";
  EXPECT_EQ(annotations_of({v}, {}, {"a,line=9:b%\n.cases", 0}),
            "::error file=a%2Cline=9%3Ab%25\\x0a.cases,title=attest%3A bad fail::x.safetensors: "
            "100%25\\x0a::add-mask::a\\x0d\\x1b[2J; repeat: attest\n");
}

TEST(GithubAnnotations, AreAsManyAsAreShown) {
  const std::vector<Verdict> many(25, verdict_of("bad", Status::crashed, "seq=4 dim=4", "crashed", "bang"));
  const std::string text = annotations_of(many, {"one", "two"}, {});
  std::size_t errors = 0;
  for (std::size_t at = text.find("::error "); at != std::string::npos; at = text.find("::error ", at + 1)) ++errors;
  EXPECT_EQ(errors, 10u);
  EXPECT_TRUE(text.ends_with("::notice title=attest::17 more failures are in the log\n")) << text;
}

}  // namespace
}  // namespace attest
