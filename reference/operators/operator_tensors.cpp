#include "reference/operators/operator_tensors.h"

#include <array>
#include <cmath>

#include "reference/arithmetic/rounding.h"
#include "reference/linear/linear_attention.h"
#include "reference/options/options.h"
#include "reference/softmax/key_place.h"

namespace attest {

namespace {

/// What the rules of linear attention read besides; options say how they are broadcast.
constexpr InputTensor kDecay = {
    "decay", &Inputs::decay, {Axis::batch, Axis::key_heads, Axis::queries, Axis::key_dim}, -1, 0};
constexpr InputTensor kBeta = {"beta", &Inputs::beta, {Axis::batch, Axis::key_heads, Axis::queries, Axis::one}, 0, 1};

Index4 extents_of(const Call& p, const std::array<Axis, 4>& axes) {
  Index4 shape{};
  for (std::size_t n = 0; n < 4; ++n) shape[n] = extent_of(p, axes[n]);
  return shape;
}

}  // namespace

std::vector<ExtraInput> extra_inputs(const Call& p) {
  std::vector<ExtraInput> list;
  const auto add = [&](const InputTensor& tensor, const std::array<Axis, 4>& stored) {
    list.push_back({tensor.name, tensor.place, stored, extents_of(p, stored), extents_of(p, tensor.axes), tensor.low,
                    tensor.high});
  };
  if (p.has_decay()) {
    std::array<Axis, 4> stored = kDecay.axes;
    if (p.decay_per_head) stored[3] = Axis::one;
    add(kDecay, stored);
  }
  if (p.has_beta()) {
    std::array<Axis, 4> stored = kBeta.axes;
    if (p.beta_shared) stored[1] = Axis::one;
    add(kBeta, stored);
    if (p.key_heads == 0) list.back().shape[1] = 0;
  }
  const Problem problem = problem_of(p);
  for (const Option& option : options()) {
    if (option.input && option.is_set(problem)) add(*option.input, option.input->axes);
  }
  return list;
}

std::vector<InputTensor> input_tensors() {
  std::vector<InputTensor> list = {kDecay, kBeta};
  for (const Option& option : options()) {
    if (option.input) list.push_back(*option.input);
  }
  return list;
}

double key_divisor(const Call& p) { return p.has_beta() ? std::sqrt(static_cast<double>(p.key_dim)) : 1; }

std::vector<PresentOutput> present_outputs(const Call& p) {
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

PresentValues expect_state(const Call& p, const Inputs& inputs, const std::vector<Producer>& producers) {
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

PresentValues expect_present(const Call& p, const Inputs& inputs, const PresentOutput& output,
                             const std::vector<Producer>& producers) {
  if (p.op != Op::attention) return expect_state(p, inputs, producers);
  PresentValues present = expect_cache(inputs, output);
  present.bounds.assign(producers.size(), std::vector<double>(present.values.size()));
  return present;
}

}  // namespace attest
