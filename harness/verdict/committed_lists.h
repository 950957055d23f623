// Committed lists of cases beside a backend, in backends/<name>/: a canonical case line or a file's name on each line,
// with * for anything, and a comment behind #.
//
// expected_refusals: the cases of committed suites that it refuses.
// waivers: cases whose suspect results are known to be right, each with its reason as the comment. Only `suspect` can
// be waived: a result outside its bound is wrong.
#pragma once

#include <string>
#include <vector>

#include "harness/verdict/verdict.h"

namespace attest {

struct ListedCase {
  std::string pattern;  ///< a canonical case line or a file's name; * stands for anything
  std::string comment;  ///< what stands behind # on the line, "" if nothing
};

/// Compares a run over committed suites with the lists: refusals that are not listed, and listed lines that were run
/// and not refused. One sentence each.
std::vector<std::string> compare_refusals(const std::vector<Verdict>& verdicts);

/// Fills verdict.waiver when the verdict is suspect and listed.
void apply_waiver(Verdict& verdict, const std::vector<ListedCase>& waivers);
/// The same with its backend's list. Throws UserError at an entry without a reason.
void apply_waiver(Verdict& verdict);

}  // namespace attest
