// Suite `deep` once more with gradients: each of its pairs of classes in both passes that give some.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/call/problem.h"

namespace attest {

/// For GeneratedSuite; no seed changes them.
std::vector<Problem> deep_backward_problems(std::uint64_t seed);

}  // namespace attest
