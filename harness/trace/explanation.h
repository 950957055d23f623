// The worst elements of one case on one backend: got, expected, where their bounds come from, and the keys they see.
#pragma once

#include <cstdio>

#include "backends/backend.h"
#include "harness/cases/case.h"
#include "harness/verdict/verdict.h"

namespace attest {

/// Runs the case on the backend and prints to `out` the verdict and its `elements` worst outputs. The verdict is what
/// it prints; `refused` when the backend does, in which case nothing was run.
Verdict explain(const Case& source, Backend& backend, int threads, int elements, std::FILE* out = stdout);

}  // namespace attest
