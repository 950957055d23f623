// What surrounds the smallest case that fails: options that it doesn't need, and cases that differ from it in one
// thing, which fail, too, or don't.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "harness/verdict/verdict.h"
#include "reference/call/problem.h"

namespace attest {

/// Options that `failing` has and `smallest` has not, by name: the failure doesn't need them.
std::vector<std::string> options_not_needed(const Problem& failing, const Problem& smallest);

/// Cases beside one, each told by the words of its line that the other line lacks, as "heads=2".
struct Neighbours {
  std::vector<std::string> failing, right, refused;
  bool finished = true;  ///< false: `go_on` ended it
  bool empty() const { return failing.empty() && right.empty() && refused.empty(); }
};

/// Each size one larger, every storage type, and each option that the case lacks, with the plainest value that is worth
/// trying. `check` runs a case; `go_on` is asked before each.
Neighbours neighbours_of(const Problem& smallest, const std::function<Verdict(const Problem&)>& check,
                         const std::function<bool()>& go_on);

/// For people: a line for each list that isn't empty, with at most eight of its cases.
std::string text_of(const Neighbours& neighbours);

}  // namespace attest
