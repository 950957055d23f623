#include "reference/operators/operator_tensors.h"

#include <cmath>

#include "reference/arithmetic/rounding.h"
#include "reference/call/tensor_table.h"
#include "reference/linear/linear_attention.h"
#include "reference/softmax/key_place.h"

namespace attest {

double key_divisor(const Call& p) { return p.has_beta() ? std::sqrt(static_cast<double>(p.key_dim)) : 1; }

std::vector<TensorId> present_outputs(const Call& p) {
  std::vector<TensorId> list;
  for (const TensorId id : {TensorId::present_k, TensorId::present_v, TensorId::present_state}) {
    if (has_tensor(p, id)) list.push_back(id);
  }
  return list;
}

namespace {

/// Cached keys or values in front of the new ones, bit for bit.
PresentValues expect_cache(const Call& p, const Inputs& inputs, TensorId output) {
  PresentValues present;
  const Cache cache = output == TensorId::present_v ? Cache::values : Cache::keys;
  each_index(seen_shape(p, output), [&](std::int64_t b, std::int64_t h, std::int64_t j, std::int64_t d) {
    present.values.push_back(load_cached(inputs, cache, b, h, j, d));
  });
  return present;
}

PresentValues expect_state(const Call& p, const Inputs& inputs, TensorId output,
                           const std::vector<Producer>& producers) {
  PresentValues present;
  present.bounds.resize(producers.size());
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t h = 0; h < p.key_heads; ++h) {
      LinearState state(p, inputs, b, h, arithmetics_of(producers, output));
      while (state.tokens() < p.query_length) state.step();
      for (std::size_t n = 0; n < producers.size(); ++n) {
        const Storing storing(producers[n].arithmetic.of(output), producers[n].type_of(p, output));
        const std::vector<double> errors = state.bounds(n);
        for (std::size_t at = 0; at < errors.size(); ++at) {
          present.bounds[n].push_back(storing.bound(std::fabs(state.values()[at]), errors[at]));
        }
      }
      present.values.insert(present.values.end(), state.values().begin(), state.values().end());
    }
  }
  return present;
}

}  // namespace

PresentValues expect_present(const Call& p, const Inputs& inputs, TensorId output,
                             const std::vector<Producer>& producers) {
  if (!is_copied(output)) return expect_state(p, inputs, output, producers);
  PresentValues present = expect_cache(p, inputs, output);
  present.bounds.assign(producers.size(), std::vector<double>(present.values.size()));
  return present;
}

}  // namespace attest
