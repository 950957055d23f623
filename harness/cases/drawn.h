// The suite `drawn`: cases that nobody has seen before, for a run each night with a seed of its own.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/call/problem.h"

namespace attest {

/// Two to five options of the table together, each in one of its classes, at a number that lies anywhere in it.
std::vector<Problem> drawn_problems(std::uint64_t seed);

}  // namespace attest
