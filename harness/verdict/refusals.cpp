#include "harness/verdict/refusals.h"

#include <map>

#include "harness/verdict/listed_cases.h"

namespace attest {

std::vector<std::string> compare_refusals(const std::vector<Verdict>& verdicts) {
  std::map<std::string, std::vector<ListedCase>> expected;
  std::vector<std::string> problems;
  for (const Verdict& v : verdicts) {
    if (v.backend == "reference") continue;
    if (!expected.contains(v.backend)) expected[v.backend] = listed_cases(v.backend, "expected_refusals");
    const bool listed = find_case(expected[v.backend], v.case_line) != nullptr;
    if (v.status == Status::refused && !listed) {
      problems.push_back("refusal not in backends/" + v.backend + "/expected_refusals: " + v.case_line + " (" +
                         v.reason + ")");
    } else if (v.status != Status::refused && listed) {
      problems.push_back("listed in backends/" + v.backend +
                         "/expected_refusals but no longer refused: " + v.case_line);
    }
  }
  return problems;
}

}  // namespace attest
