// Expected refusals: backends/<name>/expected_refusals lists the cases of committed suites that it refuses.
#pragma once

#include <string>
#include <vector>

#include "harness/verdict/verdict.h"

namespace attest {

/// Compares a run over committed suites with the lists: refusals that are not listed, and listed lines that were run
/// and not refused. One sentence each.
std::vector<std::string> compare_refusals(const std::vector<Verdict>& verdicts);

}  // namespace attest
