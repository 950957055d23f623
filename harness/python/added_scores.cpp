#include "harness/python/added_scores.h"

#include <cmath>

#include "reference/softmax/attention.h"

namespace attest {

AddedScores added_scores(const Call& call, const Inputs& inputs) {
  const bool masked = inputs.mask() && is_additive(*inputs.mask());
  const bool by_head = inputs.slopes() || (masked && inputs.mask()->strides[1] != 0);
  const std::int64_t rows = call.query_length * call.key_length;
  const Index4 counted = {call.batch, by_head ? call.query_heads : 1, call.query_length, call.key_length};
  AddedScores added;
  added.dtype = accumulator_of(call.dtype);
  added.shape = {call.batch, call.query_heads, call.query_length, call.key_length};
  added.strides = {counted[1] * rows, by_head ? rows : 0, call.key_length, 1};
  added.bytes.resize((static_cast<std::size_t>(counted[0] * counted[1] * rows) + 1) * size_of(added.dtype));
  std::int64_t at = 0;
  each_index(counted, [&](auto b, auto h, auto i, auto j) {
    double sum = masked ? load(inputs.mask()->data, inputs.mask()->dtype, inputs.mask()->offset(b, h, i, j)) : 0;
    if (inputs.slopes()) {
      const Placement place = locate(call, b, i, j);
      sum -= inputs.slope(b, h) * std::fabs(static_cast<double>(place.diagonal - place.key));
    }
    store(added.bytes.data(), added.dtype, at++, sum);
  });
  return added;
}

}  // namespace attest
