// The whole command line around a registry of backends: what a program of one's own calls from main.
#pragma once

#include <span>

#include "backends/backend.h"

namespace attest {

enum ExitCode : int { kOk = 0, kFailed = 1, kBadRequest = 2, kNothingChecked = 3, kInterrupted = 130 };

/// Parses and runs; prints a user's error as one line on stderr. Never throws.
int run_command_line(int argc, const char* const* argv, std::span<const BackendEntry> registry);

}  // namespace attest
