// The command line around your backends: your main() calls run_command_line().
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "backends/backend.h"

namespace attest {

enum ExitCode : int { kOk = 0, kFailed = 1, kBadRequest = 2, kNothingChecked = 3, kInterrupted = 130 };

class Ranks;

/// Of a program that a launcher of MPI started as one of several: joins the others.
using JoinRanks = std::function<std::unique_ptr<Ranks>()>;

/// Parses and runs; prints a user's error as one line on stderr. Never throws. Without `join_ranks` the program can't
/// be a rank of an MPI job, and says so where a launcher started it.
int run_command_line(int argc, const char* const* argv, std::span<const BackendEntry> registry,
                     const JoinRanks& join_ranks = nullptr);

}  // namespace attest
