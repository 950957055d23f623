// A program of others, such as a compiler, run in a sandbox like a worker's, but for processes of its own.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "harness/backends/isolation/isolation_options.h"

namespace attest {

struct ConfinedProgram {
  std::vector<std::string> words;               ///< the program, searched in PATH, with its arguments
  std::vector<std::filesystem::path> readable;  ///< besides the system's folders
  std::filesystem::path scratch;                ///< it runs there, and writes nowhere else
  SandboxOptions sandbox;
};

struct ProgramEnd {
  int status = 0;  ///< as of waitpid
  bool timed_out = false;
  bool wrote_too_much = false;  ///< and was ended for that; so is one that has timed out
  std::string output;           ///< of both streams, as far as 64 KiB
};

/// Runs it to its end, or ends it with all its processes after `limit`. Throws BackendUnavailable where no process can
/// be started.
ProgramEnd run_confined(const ConfinedProgram& program, std::chrono::milliseconds limit);

/// In the process that run_confined() has started: enters the sandbox and becomes the program. Returns the exit code
/// where that fails.
int become_confined(const ConfinedProgram& program);

}  // namespace attest
