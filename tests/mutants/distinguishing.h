// attest mutants --distinguishing: case lines that show what suites leave hidden.
//
// A suite may meet a class, or a pair, with cases on which a mistake made just there doesn't show: the last key is
// hidden, or all values are alike. For each class, or pair, and each mistake that may matter there, this looks for a
// case that shows it, wherever the suites have none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace attest::mutants {

/// Prints the lines, a function of the suites and the seed alone, and on standard error what they add. `known`: a file
/// that keeps what each case showed, for the next run on suites that have only grown; empty: none.
void print_distinguishing(bool pairs, const std::vector<std::string>& suites, std::uint64_t seed,
                          const std::string& known);

}  // namespace attest::mutants
