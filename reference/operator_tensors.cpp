#include "reference/operator_tensors.h"

#include <algorithm>
#include <cmath>

#include "reference/linear_attention.h"
#include "reference/rounding.h"

namespace attest {

std::vector<ExtraInput> extra_inputs(const Problem& p) {
  std::vector<ExtraInput> list;
  const Index4 rows = {p.batch, p.key_heads, p.query_length, 1};
  if (p.has_decay()) {
    Index4 full = rows;
    full[3] = p.key_dim;
    list.push_back({"decay", &Inputs::decay, p.decay_per_head ? rows : full, full, -1, 0});
  }
  if (p.has_beta()) {
    const Index4 shared = {p.batch, std::min<std::int64_t>(p.key_heads, 1), p.query_length, 1};
    list.push_back({"beta", &Inputs::beta, p.beta_shared ? shared : rows, rows, 0, 1});
  }
  if (p.initial_state) {
    const Index4 shape = {p.batch, p.key_heads, p.key_dim, p.value_dim};
    list.push_back({"past_state", &Inputs::state, shape, shape, -1, 1});
  }
  return list;
}

double key_divisor(const Problem& p) { return p.has_beta() ? std::sqrt(static_cast<double>(p.key_dim)) : 1; }

std::vector<PresentOutput> present_outputs(const Problem& p) {
  if (!p.wants(Output::present)) return {};
  if (p.op != Op::attention) {
    return {{"present_state", &Outputs::present_state, {p.batch, p.key_heads, p.key_dim, p.value_dim}, false}};
  }
  return {{"present_k", &Outputs::present_k, {p.batch, p.key_heads, p.key_length, p.key_dim}, true},
          {"present_v", &Outputs::present_v, {p.batch, p.key_heads, p.key_length, p.value_dim}, true}};
}

namespace {

/// Cached keys or values in front of the new ones, bit for bit.
PresentValues expect_cache(const Inputs& inputs, const PresentOutput& output) {
  PresentValues present;
  const Cache cache = output.place == &Outputs::present_v ? Cache::values : Cache::keys;
  each_index(output.shape, [&](std::int64_t b, std::int64_t h, std::int64_t j, std::int64_t d) {
    present.values.push_back(load_cached(inputs, cache, b, h, j, d));
  });
  return present;
}

PresentValues expect_state(const Problem& p, const Inputs& inputs, const std::vector<Producer>& producers) {
  PresentValues present;
  present.bounds.resize(producers.size());
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t h = 0; h < p.key_heads; ++h) {
      LinearState state(p, inputs, b, h, arithmetics_of(producers));
      while (state.tokens() < p.query_length) state.step();
      for (std::size_t n = 0; n < producers.size(); ++n) {
        const Storing storing(producers[n].arithmetic, producers[n].stored);
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

PresentValues expect_present(const Problem& p, const Inputs& inputs, const PresentOutput& output,
                             const std::vector<Producer>& producers) {
  if (p.op != Op::attention) return expect_state(p, inputs, producers);
  PresentValues present = expect_cache(inputs, output);
  present.bounds.assign(producers.size(), std::vector<double>(present.values.size()));
  return present;
}

}  // namespace attest
