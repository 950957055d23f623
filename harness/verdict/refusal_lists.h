// What a backend refuses of the committed suites, held against its list and written as one (committed_lists.h).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/verdict/verdict.h"

namespace attest {

/// Reads what a run of these backends needs at its end: their waivers, and their lists of refusals, which lie in
/// `written_to`/<backend>/ where that is not empty. Throws UserError at a faulty one, before any work is done.
void require_lists(const std::vector<std::string>& backends, const std::filesystem::path& written_to);

/// Compares a run over committed suites with the lists: refusals that are not listed, and listed cases that were run
/// and not refused. A sentence for each backend and reason, with its first case, or that there is no list; nothing
/// when all is as listed. Throws UserError at a list that can't be read.
std::vector<std::string> compare_refusals(const std::vector<Verdict>& verdicts);

/// A pattern for what the refused cases have in common and no other has, where there are at least four of them; the
/// rest line by line. Each with the reason of the refusal as its comment.
std::vector<std::string> refusal_list(const std::vector<Verdict>& verdicts, const std::string& backend);

/// Writes `folder`/<backend>/expected_refusals for every backend of a run over committed suites. Entries that are
/// there already stay when they stand for no case of this run. Returns the paths. Throws UserError.
std::vector<std::filesystem::path> write_refusals(const std::filesystem::path& folder,
                                                  const std::vector<Verdict>& verdicts);

}  // namespace attest
