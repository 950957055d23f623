// A script that lets bash complete commands, options and their values, and the words of case lines.
#pragma once

#include <string>

#include "harness/cli/program_description.h"

namespace attest {

/// What the script asks the program for when it is needed: `attest completion --words suites`, `backends` or `keys`.
std::string bash_completion(const ProgramDescription& program);

}  // namespace attest
