// Commands that repeat a verdict whose case is longer than a command line takes.
#pragma once

#include <cstddef>

#include "harness/verdict/verdict.h"

namespace attest {

/// Linux takes no argument of more than 128 KiB.
inline constexpr std::size_t kLongestArgument = 100'000;

/// Where a line in the command of a failure is longer than that, its lines are written to a file in the folder for
/// temporary files, which the command then names with --suite-file. Others stay as they are, and so does one whose file
/// can't be written.
void keep_long_lines(Verdict& verdict);

}  // namespace attest
