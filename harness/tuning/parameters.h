// Numbers that backends let others choose: how they are told, repeated and given.
//
// A backend's own are in use unless $ATTEST_PARAMETERS or, without it, the file that `attest tune` wrote says
// otherwise.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "backends/backend.h"

namespace attest {

/// "key_tile=256 query_tile=96": the parameters whose value is not the standard one, in their order.
std::string parameters_text(const Tuning& tuning);
/// "128 256 512", with `between` between two.
std::string choices_text(const Parameter& parameter, std::string_view between);
/// The values in use, in the order of the parameters.
std::vector<std::int64_t> values_of(const Tuning& tuning);
std::vector<std::int64_t> standard_values(const Tuning& tuning);

/// What a backend says of itself, and which of its parameters are not standard.
Identity identity_of(const Backend& backend);

/// "opencl.key_tile=256 opencl.query_tile=96", as $ATTEST_PARAMETERS takes it; empty where all are standard.
std::string parameters_variable(const Identity& identity);
/// In front of a command that shall repeat what this backend did; empty where its parameters are standard.
std::string parameters_prefix(const Identity& identity);

/// Gives a backend what was chosen for it: by $ATTEST_PARAMETERS, which is "standard" or words as parameters_variable()
/// gives them, and says all; else by the file of tuned_file(). Throws UserError for a file or a variable that can't be
/// understood, an unknown parameter and a value that is none of its choices.
void give_parameters(Backend& backend);

/// Throws UserError where $ATTEST_PARAMETERS names a backend that is none of these.
void check_named_backends(const std::vector<std::string>& known);

}  // namespace attest
