// All that hides keys from queries in one array, for kernels that take any mask.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/call/call.h"
#include "reference/call/tensors.h"

namespace attest {

struct VisiblePairs {
  std::vector<std::uint8_t> bytes;  ///< 1: the query sees the key
  Index4 shape{}, strides{};        ///< batch, query heads, queries, keys; stride 0 over heads that see alike

  /// Whether it was computed.
  bool there() const { return shape[0] > 0; }
};

/// The reference's own answer for every pair, with -inf of an additive mask as hidden.
VisiblePairs visible_pairs(const Call& call, const Inputs& inputs);

/// Whether it depends on more than the call: on a mask or on blocks.
bool visible_by_inputs(const Call& call);

}  // namespace attest
