// What checking a case costs, estimated from its call alone: the same number on every machine, so that parts of a run
// made on different ones fit together.
#pragma once

#include "reference/call/call.h"

namespace attest {

/// Microseconds of one core, about, with one backend. What counts is the proportion of two cases.
double cost_of(const Call& call);

}  // namespace attest
