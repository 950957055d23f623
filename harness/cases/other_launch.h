// Another run of a plan whose lengths are data.
#pragma once

#include "reference/call/problem.h"

namespace attest {

/// The problem with other lengths, pages and numbers, for the same plan (reference/call/launch.h); its last sequence is
/// empty. `problem` has lengths that are data.
Problem other_launch(const Problem& problem);

}  // namespace attest
