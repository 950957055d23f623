// Committed lists of cases, a folder for each backend: a canonical case line or a file's name on each line, with * for
// anything, and a comment behind #.
//
// expected_refusals: the cases of committed suites that it refuses (refusal_lists.h).
// waivers: cases whose suspect results are known to be right, each with its reason as the comment. Only `suspect` can
// be waived: a result outside its bound is wrong.
//
// A list lies in backends/<name>/, installed with attest or in the source tree; of several backends that are one
// folder, in its lists/<name>/. Backends from elsewhere have theirs in $ATTEST_LISTS/<name>/, which is looked in first,
// or in lists/<name>/ where that isn't set: beside their own sources.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "harness/verdict/verdict.h"

namespace attest {

struct ListedCase {
  std::string pattern;  ///< a canonical case line or a file's name; * stands for anything
  std::string comment;  ///< what stands behind # on the line, "" if nothing
};

/// Whether the pattern stands for this case: for its line, or for a file's name. A pattern with * also reaches the call
/// that a file holds, and one that begins with "* " may stand at the beginning of a line, as one that ends in " *" at
/// its end.
bool matches(const std::string& pattern, const Verdict& verdict);

/// Where the list of a backend lies, or would lie: `file` is "expected_refusals" or "waivers".
std::filesystem::path list_path(const std::string& backend, const std::string& file);

/// The entries of a list; none when there is no such file. Throws UserError at a line that is no case.
std::vector<ListedCase> read_list(const std::filesystem::path& path);

/// The waivers of a backend, read once. Throws UserError at a line that is no case and at an entry without a reason.
const std::vector<ListedCase>& waivers_of(const std::string& backend);

/// Fills verdict.waiver when the verdict is suspect and listed.
void apply_waiver(Verdict& verdict, const std::vector<ListedCase>& waivers);
/// The same with waivers_of its backend.
void apply_waiver(Verdict& verdict);

/// Waivers that nothing needed: of those whose cases are among the verdicts, the ones for which every such case is
/// right. A sentence for each, which says where the entry is to be removed.
std::vector<std::string> unneeded_waivers(const std::vector<Verdict>& verdicts);

}  // namespace attest
