// Lists beside a backend: which cases an entry stands for, and entries that can't be read. Refusals and waivers that
// use them: refusal_lists_test.cpp and error_deviation_test.cpp.
#include "harness/verdict/committed_lists.h"

#include <cstdlib>

#include "harness/base/user_error.h"
#include "tests/unit/scratch_folder.h"

namespace attest {
namespace {

Verdict verdict_of(const std::string& backend, const std::string& line, const std::string& call_line = "") {
  Verdict v;
  v.backend = backend;
  v.case_line = line;
  v.call_line = call_line;
  return v;
}

TEST(CommittedLists, APatternReachesLinesAndTheCallsOfFiles) {
  EXPECT_TRUE(matches("* dtype=f16 *", verdict_of("b", "dtype=f16 seq=4 dim=4")));
  EXPECT_TRUE(matches("* causal *", verdict_of("b", "seq=4 dim=4 causal")));
  EXPECT_FALSE(matches("* dtype=f16 *", verdict_of("b", "seq=4 dim=4 mask=add:1111:normal mask.dtype=f16")));
  EXPECT_TRUE(matches("op=linear *", verdict_of("b", "op=linear seq=4 dim=4")));
  const Verdict file = verdict_of("b", "tests/golden/one.safetensors", "seq=4 dim=4 causal");
  EXPECT_TRUE(matches("one.safetensors", file));
  EXPECT_TRUE(matches("* causal *", file));
  EXPECT_FALSE(matches("* softcap=* *", file));
  EXPECT_FALSE(matches("two_*.safetensors", file));
}

TEST(CommittedLists, AnEntryIsACanonicalLineOrAPatternWithItsComment) {
  const Folder folder;
  std::ofstream(folder / "list") << "# about\n\ndim=4 seq=4   # any order\nop=linear *\none_*.safetensors # files\n";
  const std::vector<ListedCase> list = read_list(folder / "list");
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[0].pattern, "seq=4 dim=4");
  EXPECT_EQ(list[0].comment, "any order");
  EXPECT_EQ(list[1].pattern, "op=linear *");
  EXPECT_EQ(list[1].comment, "");
  EXPECT_EQ(list[2].pattern, "one_*.safetensors");
  EXPECT_TRUE(read_list(folder / "none").empty());
}

TEST(CommittedLists, ALineThatIsNoCaseIsTheUsersError) {
  const Folder folder;
  std::ofstream(folder / "list") << "seq=4\n";
  EXPECT_THROW(read_list(folder / "list"), UserError);
}

TEST(CommittedLists, AWaiverThatNothingNeedsIsTold) {
  const Folder folder;
  const fs::path list = folder / "no_longer_suspect";
  fs::create_directories(list);
  std::ofstream(list / "waivers") << "seq=4 *  # fixed\nseq=5 *  # in part\nseq=6 *  # not met\n";
  setenv("ATTEST_LISTS", list.parent_path().c_str(), 1);
  std::vector<Verdict> verdicts;
  for (const char* line : {"seq=4 dim=4", "seq=4 dim=8", "seq=5 dim=4", "seq=5 dim=8"}) {
    verdicts.push_back(verdict_of("no_longer_suspect", line));
    verdicts.back().status = Status::pass;
  }
  verdicts.back().status = Status::suspect;
  const std::vector<std::string> told = unneeded_waivers(verdicts);
  unsetenv("ATTEST_LISTS");
  ASSERT_EQ(told.size(), 1u);
  EXPECT_NE(told[0].find("no_longer_suspect passes what is waived: seq=4 *; remove it from " + list.string()),
            std::string::npos)
      << told[0];
}

}  // namespace
}  // namespace attest
