#include "reference/linear/linear_gradient.h"

#include <algorithm>
#include <cmath>

namespace attest {
namespace {

double read(const ConstTensor& t, std::int64_t b, std::int64_t h, std::int64_t l, std::size_t d) {
  return load(t.data, t.dtype, t.offset(b, h, l, static_cast<std::int64_t>(d)));
}

}  // namespace

LinearGradient::LinearGradient(const Call& p, const Inputs& inputs, std::int64_t b, std::int64_t key_head,
                               const std::vector<Arithmetic>& arithmetics)
    : call_(p),
      inputs_(inputs),
      b_(b),
      key_head_(key_head),
      left_(p.query_count(b)),
      run_(std::max<std::int64_t>(1, std::lround(std::sqrt(static_cast<double>(p.query_length))))),
      arithmetics_(arithmetics),
      bounds_(arithmetics.size()) {
  const auto keys = static_cast<std::size_t>(p.key_dim), columns = static_cast<std::size_t>(p.value_dim);
  LinearState state(p, inputs, b, key_head, arithmetics);
  for (; state.tokens() < left_; state.step()) {
    if (state.tokens() % run_ == 0) starts_.push_back(state);
  }
  first_ = left_;
  step_.state.resize(keys * columns);
  for (std::size_t at = 0; inputs.dpresent() && at < keys * columns; ++at)
    step_.state[at] = read(*inputs.dpresent(), b, key_head, static_cast<std::int64_t>(at / columns), at % columns);
  for (const Arithmetic& a : arithmetics) errors_.emplace_back(p, a);
}

const LinearState& LinearGradient::state_after(std::int64_t t) {
  if (t < first_) {
    first_ = t / run_ * run_;
    states_.clear();
    LinearState state = starts_[static_cast<std::size_t>(t / run_)];
    while (state.tokens() <= t) {
      state.step();
      states_.push_back(state);
    }
  }
  return states_[static_cast<std::size_t>(t - first_)];
}

/// G += scale * q do^T of each query head.
void LinearGradient::add_loss() {
  const auto keys = static_cast<std::size_t>(call_.key_dim), columns = static_cast<std::size_t>(call_.value_dim);
  const double scale = call_.scale_value();
  step_.later = step_.state;
  step_.loss.assign(keys * columns, 0);
  step_.operands.assign(keys * columns, 0);
  std::vector<double> query(keys), loss(columns);
  for (std::int64_t h = key_head_ * call_.heads_per_group(); h < (key_head_ + 1) * call_.heads_per_group(); ++h) {
    for (std::size_t d = 0; d < keys; ++d) query[d] = read(inputs_.q(), b_, h, left_, d);
    for (std::size_t m = 0; m < columns; ++m) loss[m] = read(inputs_.dout(), b_, h, left_, m);
    for (std::size_t at = 0; at < step_.state.size(); ++at) {
      const double q = query[at / columns], of_out = loss[at % columns], term = scale * q * of_out;
      step_.state[at] += term;
      step_.loss[at] += std::fabs(term);
      step_.operands[at] += std::fabs(q) + std::fabs(of_out);
    }
  }
  step_.arrived = step_.state;
}

void LinearGradient::step() {
  --left_;
  const LinearState& state = state_after(left_);
  const LinearState::Token& token = state.token();
  const std::size_t keys = token.key.size(), columns = token.value.size();
  const bool delta = call_.has_beta();
  add_loss();
  std::vector<double>& g = step_.state;
  step_.written.assign(columns, 0);
  for (std::size_t at = 0; at < g.size(); ++at) step_.written[at % columns] += token.key[at / columns] * g[at];

  gradient_.key.assign(keys, 0);
  gradient_.value.assign(columns, 0);
  gradient_.beta.assign(1, 0);
  gradient_.decay.assign(call_.decay_per_head ? 1 : keys, 0);
  for (std::size_t m = 0; m < columns; ++m) {
    const double of_value = token.beta * step_.written[m];
    gradient_.value[m] = of_value;
    if (delta) gradient_.beta[0] += step_.written[m] * token.difference[m];
    for (std::size_t d = 0; d < keys; ++d) {
      const std::size_t at = d * columns + m;
      gradient_.key[d] += g[at] * (token.beta * token.difference[m]);
      if (!delta) continue;
      gradient_.key[d] -= state.decayed()[at] * of_value;
      g[at] -= token.key[d] * of_value;
    }
  }
  step_.decayed = g;
  for (std::size_t at = 0; call_.has_decay() && at < g.size(); ++at) {
    gradient_.decay[call_.decay_per_head ? 0 : at / columns] += g[at] * state.decayed()[at];
    g[at] *= token.decay[at / columns];
  }
  for (std::size_t a = 0; a < errors_.size(); ++a) errors_[a].carry(state, a, step_, bounds_[a]);
}

}  // namespace attest
