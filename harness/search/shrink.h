// The smallest case that still fails.
//
// Greedy and deterministic: candidates are tried in a fixed order, the most drastic first, each line at most once; the
// first that still fails is taken and the search begins again from it, until none fails. What remains is minimal in
// this sense: no option can be dropped, no size made one smaller, no fill made plainer, without the failure going away.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "reference/call/problem.h"

namespace attest {

/// A step towards something simpler: edits a problem, which may be no case afterwards.
using Simplification = std::function<void(Problem&)>;

/// Hands over what would make `problem` simpler, in the order in which it is tried, until `visit` says false. One at a
/// time: a case with tens of thousands of lengths has as many steps, and each makes another such case.
void each_simplification(const Problem& problem, const std::function<bool(const Simplification&)>& visit);

/// The case that comes out, in canonical form; nullopt where it is none, or `from` itself. Strides that no longer fit
/// the sizes are left to the layout.
std::optional<Problem> simplified(const Problem& from, const Simplification& change);

/// Simpler problems in that order, one at a time, until `visit` says false.
void each_simpler_problem(const Problem& problem, const std::function<bool(const Problem&)>& visit);
/// All of them, for small cases.
std::vector<Problem> simpler_problems(const Problem& problem);

struct Shrunk {
  Problem problem;
  int tried = 0;         ///< candidates that were run
  bool finished = true;  ///< false: `go_on` ended the search
};

/// `fails` runs a candidate; `go_on` is asked before each, and before one is made.
Shrunk shrink(const Problem& failing, const std::function<bool(const Problem&)>& fails,
              const std::function<bool()>& go_on);

}  // namespace attest
