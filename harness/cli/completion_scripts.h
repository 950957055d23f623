// Scripts that let a shell complete commands, options and their values, and the words of case lines.
#pragma once

#include <string>

#include "harness/cli/program_description.h"

namespace attest {

/// What each script asks the program for when it is needed: `attest completion --words suites`, `backends` or `keys`.
std::string bash_completion(const ProgramDescription& program);
std::string zsh_completion(const ProgramDescription& program);
std::string fish_completion(const ProgramDescription& program);

}  // namespace attest
