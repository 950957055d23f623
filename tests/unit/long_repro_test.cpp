// A case that is longer than a command line takes is repeated from a file, and searched within time and memory.
#include "harness/verdict/long_repro.h"

#include <chrono>
#include <filesystem>
#include <fstream>

#include "harness/cases/suites.h"
#include "harness/search/shrink.h"
#include "harness/verdict/prepared_case.h"
#include "tests/unit/helpers.h"

namespace attest {
namespace {

std::string long_line(int batch) {
  std::string line = "batch=" + std::to_string(batch) + " seq=2 dim=1 lengths=1";
  for (int b = 1; b < batch; ++b) line += ",1";
  return line;
}

Verdict failure(const std::string& line) {
  Verdict verdict;
  verdict.case_line = line;
  verdict.repro = repro_command(case_from_line(line), {"mine", "", ""});
  return verdict;
}

TEST(LongRepro, NamesAFileThatHoldsTheLine) {
  const std::string line = long_line(65537);
  Verdict verdict = failure(line);
  keep_long_lines(verdict);
  ASSERT_LT(verdict.repro.size(), 1000u);
  const std::string option = "attest check --backend mine --suite-file ";
  ASSERT_TRUE(verdict.repro.starts_with(option)) << verdict.repro;
  const std::filesystem::path path = verdict.repro.substr(option.size());
  const std::vector<Case> cases = load_case_file(path);
  ASSERT_EQ(cases.size(), 1u);
  EXPECT_EQ(cases[0].label, line);
  std::filesystem::remove(path);
}

TEST(LongRepro, HoldsBothLinesOfAPairInTheirOrder) {
  const std::string line = long_line(60000);
  Verdict verdict = failure(line);
  verdict.after = "seq=3 dim=1";
  verdict.repro = repro_after(case_from_line(verdict.after), case_from_line(line), verdict.repro);
  keep_long_lines(verdict);
  const std::size_t at = verdict.repro.find("--suite-file ");
  ASSERT_NE(at, std::string::npos);
  const std::filesystem::path path = verdict.repro.substr(at + 13);
  const std::vector<Case> cases = load_case_file(path);
  ASSERT_EQ(cases.size(), 2u);
  EXPECT_EQ(cases[0].label, verdict.after);
  EXPECT_EQ(cases[1].label, line);
  std::filesystem::remove(path);
}

TEST(LongRepro, LeavesOthersAsTheyAre) {
  Verdict small = failure("seq=2 dim=1"), right = failure(long_line(60000));
  right.status = Status::pass;
  const std::string of_small = small.repro, of_right = right.repro;
  keep_long_lines(small);
  keep_long_lines(right);
  EXPECT_EQ(small.repro, of_small);
  EXPECT_EQ(right.repro, of_right);
}

/// 65,537 lengths have more than 100,000 simpler ones, of 131 KB each.
TEST(LongRepro, ItsSimplerCasesAreDrawnOneAtATime) {
  const Problem problem = parse_case(long_line(65537));
  int seen = 0;
  each_simpler_problem(problem, [&](const Problem&) { return ++seen < 12; });
  EXPECT_EQ(seen, 12);
  int asked = 0;
  const Shrunk shrunk = shrink(
      problem, [](const Call& p) { return p.lengths && p.batch == 65537; }, [&] { return ++asked < 40; });
  EXPECT_FALSE(shrunk.finished);
  EXPECT_EQ(asked, 40);
  EXPECT_EQ(shrunk.problem.call.batch, 65537);
}

}  // namespace
}  // namespace attest
