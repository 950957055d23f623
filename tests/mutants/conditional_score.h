// attest mutants --conditional: how many conditional mutants each suite catches.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace attest::mutants {

struct ConditionalSettings {
  std::vector<std::string> suites = {"matrix", "large"};
  std::size_t sample = 1000;         ///< mutants of each set
  std::uint64_t seed = 7777777;      ///< of the random ones; no generator of suites ever saw it
  bool gradients = false;            ///< mistakes of calls that ask for gradients alone
  std::vector<std::string> options;  ///< keys of the table: a condition of each mutant asks for one of them; none: any
  bool verbose = false;              ///< what survived
};

/// Prints the table of scores; a mutant counts for a suite when it or a suite named before it catches it.
void score_conditional(const ConditionalSettings& settings);

}  // namespace attest::mutants
