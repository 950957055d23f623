// What lengths that are data, and appending to a cache, can't be combined with.
#pragma once

#include <optional>

#include "reference/call/call.h"
#include "reference/options/find_fault.h"

namespace attest {

/// The first fault of `dynamic` and `append`; the lengths themselves are checked already.
std::optional<Fault> find_launch_fault(const Call& call);

}  // namespace attest
