// Commands that attest prints for people to type.
#pragma once

#include <string>

#include "backends/identity.h"

namespace attest {

/// `command` on this backend as it runs now: with what names it (--plugin, --python and what is said of the object),
/// with its parameters, and with the options of this run. `what` is a case, quoted already; empty: none. For an object
/// that no other process can import it is a line of Python, and `case_line` stands there.
std::string printed_command(const std::string& command, const Identity& backend, const std::string& what = "",
                            const std::string& case_line = "");

}  // namespace attest
