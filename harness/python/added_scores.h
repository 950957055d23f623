// All that is added to scores in one array, for kernels that take any bias.
#pragma once

#include <cstddef>
#include <vector>

#include "reference/call/call.h"
#include "reference/call/tensors.h"

namespace attest {

struct AddedScores {
  std::vector<std::byte> bytes;  ///< numbers of type `dtype`
  DType dtype = DType::f32;      ///< the accumulator's
  Index4 shape{}, strides{};     ///< batch, query heads, queries, keys; stride 0 over heads that are added the same
};

/// An additive mask and ALiBi's term, added up in float64 and rounded once.
AddedScores added_scores(const Call& call, const Inputs& inputs);

}  // namespace attest
