// attest list coverage: which classes of the table of options, and which pairs of them, suites meet.
#pragma once

#include <string>
#include <vector>

namespace attest {

/// Prints what the suites meet together, what they don't, and what can't be met with the reason. Without `pairs`, the
/// classes and every option beside every class of lengths. Throws UserError for an unknown suite.
void print_coverage(const std::vector<std::string>& suites, bool pairs);

}  // namespace attest
