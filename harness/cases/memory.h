// How much memory a case takes, asked before it is made.
#pragma once

#include <optional>
#include <string>

#include "reference/call/call.h"

namespace attest {

/// Bytes of storage that a case needs in the harness and, as a rule, once more in a backend.
double storage_bytes(const Call& call);

/// About as many bytes as a case takes: inputs and outputs here and in a backend, and one head in float64.
double memory_needed(const Call& call);

/// Backends walk over heads and rows also where there are no elements, and may keep a few numbers for each, or for each
/// column of a head: more than so many heads or rows of all sequences, or columns of a head, are out of reach however
/// little memory they take. What of the call is too large; nullopt when nothing is.
constexpr double kMostRows = 1 << 27;
std::optional<std::string> beyond_walking(const Call& call);

/// Throws UserError when the case needs more memory than the machine has, saying how much, or is beyond_walking.
/// `copies`: how many times its storage is there beyond memory_needed.
void check_memory(const Call& call, const std::string& label, double copies = 0);

}  // namespace attest
