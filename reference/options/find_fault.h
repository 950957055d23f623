// Whether a call can be a call at all.
#pragma once

#include <optional>
#include <string>

#include "reference/call/problem.h"

namespace attest {

/// Why this problem can't be a call (sizes that disagree, lists of the wrong length), as one sentence
/// that names the key; nullopt when it can.
struct Fault {
  std::string key, message;
};
std::optional<Fault> find_fault(const Problem& problem);

}  // namespace attest
