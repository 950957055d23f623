// Failures that say nothing of a kernel: the machine lacks what it runs on.
#pragma once

#include <string_view>

namespace attest {

/// Whether a message is one of those by which drivers and libraries say that there is no driver, or no device.
bool names_what_is_missing(std::string_view message);

}  // namespace attest
