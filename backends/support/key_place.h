// Where keys and values lie: in a past and a tensor behind it, in pages, or in one tensor.
//
// Deliberately not the reference's code: the two are checked against each other.
#pragma once

#include <cstdint>

#include "reference/call/tensors.h"

namespace attest::support {

/// A row of k and v, or of past_k and past_v.
struct KeyPlace {
  bool past = false;
  std::int64_t batch = 0, row = 0;
};

/// Key j of batch b, one that is stored.
inline KeyPlace find_key(const Inputs& inputs, std::int64_t b, std::int64_t j) {
  KeyPlace at{false, b, j};
  if (const ConstTensor* table = inputs.page_table()) {
    const std::int64_t size = inputs.k().shape[2], page = at.row / size;
    at.row -= page * size;
    at.batch = static_cast<const std::int32_t*>(table->data)[b * table->strides[0] + page * table->strides[3]];
  } else if (inputs.past_k().data) {
    at.row -= inputs.past_length(b);
    at.past = at.row < 0;  // the past ends where the new keys begin
    if (at.past) at.row = j;
  }
  return at;
}

/// The tensor that a key's place is in.
inline const ConstTensor& tensor_of(const Inputs& inputs, const KeyPlace& place, Cache which) {
  if (which == Cache::values) return place.past ? inputs.past_v() : inputs.v();
  return place.past ? inputs.past_k() : inputs.k();
}

}  // namespace attest::support
