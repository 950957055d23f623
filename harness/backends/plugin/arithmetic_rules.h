// What every statement of an arithmetic must keep, wherever it was made.
#pragma once

#include <optional>
#include <string>

#include "reference/arithmetic/arithmetic.h"

namespace attest {

/// The first rule that it breaks: "exp_ulps is -1: it must be finite and not negative"; nullopt for a sound one.
std::optional<std::string> fault_of(const Arithmetic& arithmetic);

}  // namespace attest
