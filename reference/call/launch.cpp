#include "reference/call/launch.h"

namespace attest {

Call planned(const Call& call) {
  Call plan = call;
  if (plan.dynamic) plan.lengths.reset();
  return plan;
}

void take_lengths(Call& call, const Inputs& inputs) {
  if (!call.dynamic) return;
  if (!call.lengths) call.lengths.emplace();
  const auto batch = static_cast<std::size_t>(call.batch);
  const auto take = [&](std::vector<std::int64_t>& list, TensorId from) {
    list.resize(batch);
    for (std::size_t b = 0; b < batch; ++b) list[b] = inputs.length(from, static_cast<std::int64_t>(b));
  };
  take(call.lengths->query, TensorId::query_lengths);
  take(call.lengths->key, TensorId::key_lengths);
}

Call launched(const Call& plan, const Inputs& inputs) {
  Call call = plan;
  take_lengths(call, inputs);
  return call;
}

}  // namespace attest
