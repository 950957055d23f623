// What of a problem a backend accepts: for backends that do little, so that random cases reach what they do.
#pragma once

#include <functional>
#include <optional>

#include "reference/call/problem.h"

namespace attest {

/// A problem with as many of this one's options as `accepts` allows, in the order of the table; sizes give way to usual
/// ones, and another operator to attention, where even the bare sizes are refused. nullopt when nothing like it is
/// accepted. With `always` its options come first, and none of the problem's takes their place.
std::optional<Problem> accepted_part(const Problem& problem, const std::function<bool(const Problem&)>& accepts,
                                     const Problem* always = nullptr);

}  // namespace attest
