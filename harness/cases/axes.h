// The suite `axes`: a kernel may cut at any number, and a suite of chosen sizes meets few. Each feature of the table
// that is a number is walked through every value up to a good way beyond its last cut, and sizes that belong together
// are walked as one; all other sizes are as small as they can be, so that a case takes about a millisecond.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/call/problem.h"

namespace attest {

/// In f32, f16 and bf16. The seed draws the few values that lie between the walks and 65,536.
std::vector<Problem> axes_problems(std::uint64_t seed);

}  // namespace attest
