// Makes a call one that has a tensor or a result, for code that gives a call a class of values.
#pragma once

#include <cstdint>

#include "reference/call/problem.h"

namespace attest {

void give_mask(Problem& problem, bool additive);
void give_blocks(Problem& problem);
/// Different counts of cached keys, the last of them 1 or more.
void give_past_per_batch(Call& call, std::uint64_t draw);
/// Asks for the result, of a pass that has it.
void give_output(Problem& problem, Output output);
void give_tensor(Problem& problem, TensorId tensor);

}  // namespace attest
