// The first failures of a run that look different, made small.
#include "harness/run/failure_shrinking.h"

#include "harness/base/data_folder.h"
#include "tests/faulty/faulty.h"
#include "tests/unit/helpers.h"

namespace attest {
namespace {

Verdict failure(const std::string& line, const std::string& cause) {
  Verdict v;
  v.backend = "softcap_dropped";
  v.case_line = line;
  v.status = Status::fail;
  v.cause = cause_from_text(cause);
  return v;
}

class Failures : public testing::Test {
 protected:
  Failures() : set_(faulty::faulty_backends(), {"softcap_dropped"}, {1, ""}) {}
  Backend& backend() { return *set_.all().front(); }
  std::vector<std::pair<std::string, Verdict>> shrunk(const std::filesystem::path& folder = {}) {
    std::vector<std::pair<std::string, Verdict>> found;
    shrinking_.shrink_all(1, folder,
                          [&](const Verdict& from, const Verdict& to) { found.emplace_back(from.case_line, to); });
    return found;
  }
  BackendSet set_;
  FailureShrinking shrinking_;
};

TEST_F(Failures, ThatLookAlikeAreOne) {
  const Case first = case_from_line("heads=2 seq=9 dim=8 softcap=0.1"),
             second = case_from_line("seq=5 dim=8 softcap=0.1");
  shrinking_.remember(first, backend(), failure(first.label, "outside the bound"));
  shrinking_.remember(second, backend(), failure(second.label, "outside the bound"));
  const auto found = shrunk();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].first, first.label);
  EXPECT_EQ(found[0].second.status, Status::fail);
  const Problem small = parse_case(found[0].second.case_line);
  EXPECT_LE(small.call.query_heads * small.call.query_length * small.call.key_dim, 4) << found[0].second.case_line;
  EXPECT_TRUE(shrinking_.notes().empty());
}

TEST_F(Failures, StayAsTheyAreWhereNoTimeIsLeft) {
  const Case first = case_from_line("heads=2 seq=9 dim=8 softcap=0.1");
  shrinking_.remember(first, backend(), failure(first.label, "outside the bound"));
  int found = 0;
  shrinking_.shrink_all(
      1, {}, [&](const Verdict&, const Verdict&) { ++found; }, {}, {}, [] { return 0.0; });
  EXPECT_EQ(found, 0);
  shrinking_.shrink_all(
      1, {}, [&](const Verdict&, const Verdict&) { ++found; }, {}, {}, [] { return 10.0; });
  EXPECT_EQ(found, 1);
}

TEST_F(Failures, AreAFewAtMost) {
  std::vector<Case> cases;
  for (int n = 2; n < 8; ++n) cases.push_back(case_from_line("seq=" + std::to_string(n) + " dim=8 softcap=0.1"));
  for (const Case& one : cases) shrinking_.remember(one, backend(), failure(one.label, "cause of " + one.label));
  EXPECT_EQ(shrunk().size(), 3u);
}

TEST_F(Failures, OfFilesNeedAFolder) {
  const Case file = case_from_argument(data_folder("golden") / "walkthroughs" / "three_tokens.safetensors");
  shrinking_.remember(file, backend(), failure(file.label, "outside the bound"));
  EXPECT_TRUE(shrunk().empty());
  EXPECT_EQ(shrinking_.unshrunk_files(), 1u);
}

}  // namespace
}  // namespace attest
