// Cases that take so long that one should know before.
#pragma once

#include <string>

#include "reference/call/call.h"

namespace attest {

/// Multiply-adds from which on a case is long: some seconds in a kernel of plain loops on one core.
inline constexpr double kLongMultiplyAdds = 5e9;

/// Of a backend, over all pairs, visible or not.
double multiply_adds_of(const Call& call);
/// "attest: long case, 69 billion multiply-adds on each backend (about 69 s in plain loops on one core): LINE"
std::string long_case_words(const std::string& label, double multiply_adds);
/// Says so on stderr when the case is long.
void announce_if_long(const Call& call, const std::string& label);

}  // namespace attest
