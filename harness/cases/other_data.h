// Other data at the same addresses: what a plan meets between two uploads of one case.
#pragma once

#include "harness/cases/inputs.h"
#include "reference/call/call.h"

namespace attest {

/// Overwrites, where they lie, all data that an upload may bring anew for this call: q, k, v, cached keys, mask, block
/// mask, page table, kept weights, drawn sinks, decays, betas and the state. Hidden pairs become visible and some
/// visible ones hidden, numbers become others of the same kind, and a value is NaN where none was. What the call itself
/// says (lengths, slopes, listed sinks) stays.
void change_data(const Call& call, CaseInputs& inputs);

/// Gives `to` the data of `from`, made for the same call, where `to` has its own.
void copy_data(const CaseInputs& from, CaseInputs& to);

/// Whether the two, made for the same call, hold the same bytes of all that copy_data copies.
bool same_data(const CaseInputs& a, const CaseInputs& b);

}  // namespace attest
