// Finds out whether what a backend says of itself is true, by running small problems whose answers tell.
#pragma once

#include <string>
#include <vector>

#include "backends/backend.h"

namespace attest {

/// One statement: what the backend says, and what its answers show.
struct ProbedStatement {
  std::string name, stated, observed;
  bool holds;
};

/// What the backend does where the field disagrees. A probe that the backend refuses is observed as "refused"; one that
/// throws, as "threw: ...".
std::vector<ProbedStatement> probe_conventions(Backend& backend);

/// How the backend rounds, in f32 and in f64. A statement holds when the answers show nothing worse: what is declared
/// enters a bound, so that a backend may say less than it does, never more. What it refuses is left out.
std::vector<ProbedStatement> probe_arithmetic(Backend& backend);

}  // namespace attest
