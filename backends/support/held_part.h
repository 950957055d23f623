// Which part of a call's tensors inputs hold, where attention goes by parts.
#pragma once

#include <cstdint>

namespace attest::support {

/// The first elements of the tensors of an Inputs, as the call numbers them. All zero: they are the call's own.
struct HeldPart {
  std::int64_t head = 0, query = 0;   ///< of q, mask, blocks (whole blocks of rows, query in the first) and keep
  std::int64_t batch = 0, group = 0;  ///< of k and v: batch and key head
  std::int64_t key = 0;               ///< of k, v and mask; blocks and keep have every key
};

inline constexpr HeldPart kAllHeld{};

}  // namespace attest::support
