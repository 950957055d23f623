// Running a command again whenever a file changes.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace attest {

/// Runs the command line of this process without the option --watch and with `more` words at its end, waits until one
/// of the files has changed and is complete, and begins again; a file may be gone for a while. Returns when the user
/// interrupts: the exit code of the last run, or kInterrupted where that was interrupted, too. UserError: the command
/// line can't be read again, or no process can be started.
int run_at_each_change(const std::vector<std::filesystem::path>& files, const std::vector<std::string>& more);

}  // namespace attest
