// Where keys and values lie, as the reference reads them. Backends find them by code of their own.
#pragma once

#include <cstdint>

#include "reference/call/tensors.h"

namespace attest {

/// Where key j of batch b is stored: row `row` of entry `batch` of k and v, or of past_k and past_v.
struct KeyPlace {
  bool past = false;
  std::int64_t batch = 0, row = 0;
};

inline KeyPlace place_of_key(const Inputs& inputs, std::int64_t b, std::int64_t j) {
  if (inputs.page_table()) return {false, inputs.page(b, j / inputs.rows_of_page()), j % inputs.rows_of_page()};
  const std::int64_t past = inputs.past_length(b);
  return j < past ? KeyPlace{true, b, j} : KeyPlace{false, b, j - past};
}

/// Feature d of key (or value) j of key head h, wherever it lies: in the past, in a page or among the new ones.
inline double load_cached(const Inputs& inputs, Cache cache, std::int64_t b, std::int64_t h, std::int64_t j,
                          std::int64_t d) {
  const KeyPlace place = place_of_key(inputs, b, j);
  const bool keys = cache == Cache::keys;
  const ConstTensor& from = place.past ? (keys ? inputs.past_k() : inputs.past_v()) : (keys ? inputs.k() : inputs.v());
  return load(from.data, from.dtype, from.offset(place.batch, h, place.row, d));
}

}  // namespace attest
