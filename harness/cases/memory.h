// How much memory a case takes, asked before it is made.
#pragma once

#include <string>

#include "reference/call.h"

namespace attest {

/// Bytes of storage that a case needs in the harness and, as a rule, once more in a backend.
double storage_bytes(const Call& call);

/// About as many bytes as a case takes: inputs and outputs here and in a backend, and one head in float64.
double memory_needed(const Call& call);
/// Throws UserError when the case needs more memory than the machine has, saying how much.
void check_memory(const Call& call, const std::string& label);

}  // namespace attest
