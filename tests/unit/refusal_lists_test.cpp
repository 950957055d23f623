// Lists of refusals: held against a run, in a few sentences; written from a run; found for backends from elsewhere.
#include "harness/verdict/refusal_lists.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "harness/base/user_error.h"
#include "harness/verdict/committed_lists.h"

namespace attest {
namespace {

namespace fs = std::filesystem;

Verdict verdict_of(const std::string& backend, const std::string& line, const std::string& refusal = "") {
  Verdict v;
  v.backend = backend;
  v.case_line = line;
  v.status = refusal.empty() ? Status::pass : Status::refused;
  v.reason = refusal;
  return v;
}

Verdict file_verdict(const std::string& backend, const std::string& call, const std::string& refusal) {
  Verdict v = verdict_of(backend, "tests/golden/one.safetensors", refusal);
  v.call_line = call;
  return v;
}

/// $ATTEST_LISTS is a fresh folder while this lives.
class ListsElsewhere {
 public:
  explicit ListsElsewhere(const std::string& name) : folder_(fs::path(testing::TempDir()) / name) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    setenv("ATTEST_LISTS", folder_.c_str(), 1);
  }
  ~ListsElsewhere() { unsetenv("ATTEST_LISTS"); }
  const fs::path& folder() const { return folder_; }
  void write(const std::string& backend, const std::string& file, const std::string& text) const {
    fs::create_directories(folder_ / backend);
    std::ofstream(folder_ / backend / file) << text;
  }

 private:
  fs::path folder_;
};

TEST(Refusals, AreComparedWithTheCommittedList) {
  EXPECT_FALSE(compare_refusals({verdict_of("example", "seq=4 dim=4", "no")}).empty());
  EXPECT_TRUE(compare_refusals({verdict_of("example", "seq=4 dim=4")}).empty());
}

TEST(Refusals, ComplaintsOfOneKindAreOneSentence) {
  std::vector<Verdict> run;
  for (int n = 1; n <= 500; ++n) {
    const std::string dim = std::to_string(n);
    run.push_back(verdict_of("mine", "seq=4 dim=" + dim, "dim " + dim + ": 64 alone"));
    run.push_back(verdict_of("mine", "seq=4 dim=" + dim + " causal", "causal is not done here"));
  }
  ASSERT_EQ(compare_refusals(run).size(), 1u) << "without a list, where it is wanted";
  const ListsElsewhere lists("lists_of_kinds");
  lists.write("mine", "expected_refusals", "");
  const std::vector<std::string> problems = compare_refusals(run);
  ASSERT_EQ(problems.size(), 3u);  // two kinds, and where the list lies
  EXPECT_NE((problems[0] + problems[1]).find("dim 1: 64 alone"), std::string::npos);
  EXPECT_NE((problems[0] + problems[1]).find("causal is not done here"), std::string::npos);
  EXPECT_NE(problems[2].find("--write-refusals"), std::string::npos);
  EXPECT_NE(problems[2].find("$ATTEST_LISTS"), std::string::npos);
}

TEST(Refusals, AListOfABackendFromElsewhereLiesBesideItAndInNoInstallation) {
  EXPECT_EQ(list_path("from_nowhere", "expected_refusals"), fs::path("lists/from_nowhere/expected_refusals"));
  EXPECT_TRUE(list_path("example", "expected_refusals").is_absolute());
}

TEST(Refusals, BackendsThatAreOneFolderHaveTheirListsInIt) {
  for (const std::string name : {"ring", "ring_zigzag", "head_parallel", "key_parallel"}) {
    const fs::path path = list_path(name, "expected_refusals");
    EXPECT_NE(path.string().find("backends/ring/lists/" + name), std::string::npos) << path;
    EXPECT_TRUE(fs::exists(path)) << path;
  }
}

TEST(Refusals, ABackendFromElsewhereHasItsListElsewhere) {
  const ListsElsewhere lists("lists_elsewhere");
  lists.write("from_elsewhere", "expected_refusals", "* causal *  # not yet\n");
  lists.write("from_elsewhere", "waivers", "seq=9 *  # known\n");
  EXPECT_TRUE(compare_refusals({verdict_of("from_elsewhere", "seq=4 dim=4 causal", "no")}).empty());
  EXPECT_FALSE(compare_refusals({verdict_of("from_elsewhere", "seq=4 dim=4", "no")}).empty());
  Verdict v = verdict_of("from_elsewhere", "seq=9 dim=4");
  v.status = Status::suspect;
  apply_waiver(v);
  EXPECT_EQ(v.waiver, "known");
  // One that is known here keeps its own list, unless there is another for it.
  EXPECT_NE(list_path("eigen", "expected_refusals").string().find("backends/eigen"), std::string::npos);
  lists.write("eigen", "expected_refusals", "");
  EXPECT_EQ(list_path("eigen", "expected_refusals"), lists.folder() / "eigen" / "expected_refusals");
}

TEST(Refusals, AWrittenListIsTheOneThatTheRunAgreesWith) {
  std::vector<Verdict> run;
  for (int n = 1; n <= 10; ++n) {
    const std::string size = "seq=" + std::to_string(n);
    run.push_back(verdict_of("written", size + " dim=4"));
    run.push_back(verdict_of("written", "dtype=f16 " + size + " dim=4", "f32 alone"));
    run.push_back(verdict_of("written", size + " dim=4 mask=bool:1111:" + (n % 2 == 0 ? "all" : "none"), "no masks"));
  }
  run.push_back(verdict_of("written", "seq=7 dim=3", "odd"));
  run.push_back(file_verdict("written", "dtype=f16 seq=2 dim=4", "f32 alone"));
  const std::vector<std::string> lines = refusal_list(run, "written");
  EXPECT_EQ(lines.size(), 3u) << testing::PrintToString(lines);
  EXPECT_NE(std::find(lines.begin(), lines.end(), "* dtype=f16 *  # f32 alone"), lines.end());
  EXPECT_NE(std::find(lines.begin(), lines.end(), "* mask=* *  # no masks"), lines.end());
  EXPECT_NE(std::find(lines.begin(), lines.end(), "seq=7 dim=3  # odd"), lines.end());

  const ListsElsewhere lists("written_lists");
  lists.write("written", "expected_refusals", "seq=99 dim=4  # of another suite\nseq=7 dim=4  # now done\n");
  const std::vector<fs::path> paths = write_refusals(lists.folder(), run);
  ASSERT_EQ(paths.size(), 1u);
  EXPECT_TRUE(compare_refusals(run).empty());
  const std::vector<ListedCase> list = read_list(paths.front());
  ASSERT_EQ(list.size(), 4u);
  EXPECT_EQ(list.front().pattern, "seq=99 dim=4");  // stands for no case of this run, and stays
}

TEST(Refusals, AFaultyListIsFoundBeforeAnyWork) {
  const ListsElsewhere lists("faulty_lists");
  lists.write("no_case", "expected_refusals", "seq=4\n");
  lists.write("no_reason", "waivers", "seq=4 *\n");
  lists.write("all_well", "expected_refusals", "* causal *\n");
  lists.write("all_well", "waivers", "seq=4 *  # known\n");
  EXPECT_NO_THROW(require_lists({"all_well", "without_lists"}, ""));
  EXPECT_THROW(require_lists({"all_well", "no_case"}, ""), UserError);
  EXPECT_NO_THROW(require_lists({"no_case"}, lists.folder() / "written"));
  EXPECT_THROW(require_lists({"no_case"}, lists.folder()), UserError) << "its entries stay in what is written";
  EXPECT_THROW(require_lists({"no_reason"}, ""), UserError);
}

TEST(Refusals, AFolderThatCannotBeMadeIsTheUsersError) {
  EXPECT_THROW(write_refusals("/proc/nowhere", {verdict_of("mine", "seq=4 dim=4", "no")}), UserError);
}

}  // namespace
}  // namespace attest
