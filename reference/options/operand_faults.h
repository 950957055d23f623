// What options of the operands and of the scale exclude: rope, norm, scales, a cap of unscaled products.
#pragma once

#include <optional>

#include "reference/call/problem.h"
#include "reference/options/find_fault.h"

namespace attest {

/// For calls whose lists have the right sizes.
std::optional<Fault> operand_fault(const Problem& problem);

}  // namespace attest
