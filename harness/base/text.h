// Small things done to text.
#pragma once

#include <string>

namespace attest {

/// Without white space at both ends.
std::string trimmed(const std::string& text);

/// Quoted for a POSIX shell where it must be.
std::string shell_quoted(const std::string& text);

}  // namespace attest
