// Expected refusals: backends/<name>/expected_refusals holds the case lines of committed suites that it refuses.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "harness/verdict.h"

namespace attest {

/// Canonical lines; empty when the backend has no such file.
std::set<std::string> expected_refusals(const std::string& backend);

/// Compares a run over committed suites with the lists: refusals that are not listed, and listed lines that were run
/// and not refused. One sentence each.
std::vector<std::string> compare_refusals(const std::vector<Verdict>& verdicts);

}  // namespace attest
