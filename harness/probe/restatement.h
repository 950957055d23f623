// Other things that a backend could say of its arithmetic, for whom several statements at once don't hold.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/arithmetic.h"

namespace attest::probes {

/// One statement, said otherwise.
struct Restatement {
  std::string_view field;                 ///< as its probe is named
  std::string stated, other;              ///< what is said, and what would be
  std::function<void(Arithmetic&)> make;  ///< says it
  bool of_weights = false;                ///< of how P comes about and is stored
};

/// Every statement with each value that can be named without measuring; the ones that are made already left out.
std::vector<Restatement> restatements(const Arithmetic& stated);

/// Whether no kernel could have this arithmetic: statements that exclude each other.
bool fault_in(const Arithmetic& arithmetic);

}  // namespace attest::probes
