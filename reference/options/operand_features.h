// What makes a call one whose queries and keys are rotated or normalised in the kernel.
#pragma once

#include "reference/call/call.h"

namespace attest {

/// Rope where there is none, over as many features as a row has in pairs.
void give_rope(Call& p);
/// Positions that come as tensors.
void give_positions(Call& p);
void give_norm(Call& p);

}  // namespace attest
