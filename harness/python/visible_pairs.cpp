#include "harness/python/visible_pairs.h"

#include "reference/base/types.h"
#include "reference/softmax/attention.h"

namespace attest {

bool visible_by_inputs(const Call& call) { return call.mask.has_value() || call.blocks.has_value(); }

VisiblePairs visible_pairs(const Call& call, const Inputs& inputs) {
  const bool by_head = (inputs.mask() && inputs.mask()->shape[1] > 1) ||
                       (inputs.blocks() && inputs.blocks()->shape[1] > 1) ||
                       (inputs.indices() && inputs.indices()->shape[1] > 1);
  const Index4 counted = {call.batch, by_head ? call.query_heads : 1, call.query_length, call.key_length};
  VisiblePairs pairs;
  pairs.shape = {call.batch, call.query_heads, call.query_length, call.key_length};
  const std::int64_t head = call.query_length * call.key_length;
  pairs.strides = {counted[1] * head, by_head ? head : 0, call.key_length, 1};
  pairs.bytes.reserve(static_cast<std::size_t>(counted[0] * counted[1] * head) + 1);  // data() is somewhere
  each_index(counted,
             [&](auto b, auto h, auto i, auto j) { pairs.bytes.push_back(visible(call, inputs, b, h, i, j) ? 1 : 0); });
  return pairs;
}

}  // namespace attest
