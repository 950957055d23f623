// A plan and its launches. Where lengths are data (`dynamic`), a plan is made for the largest ones, and each run has
// others: those in query_lengths and key_lengths, and the pages in page_table, when it begins.
#pragma once

#include "reference/call/call.h"
#include "reference/call/tensors.h"

namespace attest {

/// The call that a plan is made for: Lq and Lk are the most that any sequence of any run has. The same call where
/// lengths are no data.
Call planned(const Call& call);

/// Gives a planned call the lengths of a run, each at most Lq and Lk. Allocates only the first time. Does nothing where
/// lengths are no data.
void take_lengths(Call& call, const Inputs& inputs);

/// A planned call with the lengths of a run.
Call launched(const Call& plan, const Inputs& inputs);

}  // namespace attest
