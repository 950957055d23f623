// The smallest case that still fails.
//
// Greedy and deterministic: candidates are tried in a fixed order, the most drastic first, each line at most once; the
// first that still fails is taken and the search begins again from it, until none fails. What remains is minimal in
// this sense: no option can be dropped, no size made one smaller, no fill made plainer, without the failure going away.
#pragma once

#include <functional>
#include <vector>

#include "reference/problem.h"

namespace attest {

/// Simpler problems in the order in which they are tried. Each is valid and in canonical form, and none is `problem`.
std::vector<Problem> simpler_problems(const Problem& problem);

struct Shrunk {
  Problem problem;
  int tried = 0;         ///< candidates that were run
  bool finished = true;  ///< false: `go_on` ended the search
};

/// `fails` runs a candidate; `go_on` is asked before each.
Shrunk shrink(const Problem& failing, const std::function<bool(const Problem&)>& fails,
              const std::function<bool()>& go_on);

}  // namespace attest
