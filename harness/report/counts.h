// How many verdicts of each kind a run has.
#pragma once

#include <cstddef>

#include "harness/verdict/verdict.h"

namespace attest {

struct Counts {
  std::size_t pass = 0, fail = 0, refused = 0, inconclusive = 0, suspect = 0, crashed = 0, timeout = 0;
  std::size_t convention = 0;  ///< right by what the backend states
  std::size_t weak = 0;        ///< right, but little is proved
  std::size_t flaky = 0;       ///< wrong, though not every time
  std::size_t waived = 0;      ///< of the suspect ones
  void add(const Verdict& verdict);
  /// What is right.
  std::size_t passed() const { return proved() + weak; }
  /// What is right within bounds that prove it.
  std::size_t proved() const { return pass + convention; }
  std::size_t failures() const { return fail + crashed + timeout + flaky + suspect - waived; }
  std::size_t skipped() const { return refused + inconclusive + waived; }
};

}  // namespace attest
