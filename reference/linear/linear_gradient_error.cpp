#include "reference/linear/linear_gradient_error.h"

#include <algorithm>
#include <cmath>

#include "reference/linear/linear_rounding.h"

namespace attest {

LinearGradientError::LinearGradientError(const Call& p, const Arithmetic& arithmetic)
    : call_(p),
      arithmetic_(arithmetic),
      element_(static_cast<std::size_t>(p.key_dim * p.value_dim)),
      column_(static_cast<std::size_t>(p.value_dim)),
      unbounded_(arithmetic.state_chunk != 0) {
  if (unbounded_) element_.assign(element_.size(), kInfinity);
}

void LinearGradientError::Sum::add(double x, double x_error, double y, double y_error) {
  const double size_x = std::fabs(x), size_y = std::fabs(y);
  error += x_error * size_y + size_x * y_error + x_error * y_error;
  magnitude += (size_x + x_error) * (size_y + y_error);
  operands += size_x + x_error + size_y + y_error;
}

/// A sum of so many products, with two more roundings of each for a factor beta or exp(g).
double LinearGradientError::finished(const Sum& sum, double terms) const {
  const AccumulatorLimits limits(arithmetic_);
  if (!(sum.magnitude <= limits.half_range)) return kInfinity;
  return (sum.error + limits.gamma(terms + 2) * sum.magnitude + limits.eta * (terms + 2 + sum.operands)) * kEvaluation;
}

void LinearGradientError::lose(TokenGradient& bounds) const {
  for (std::vector<double>* list : {&bounds.key, &bounds.value, &bounds.decay, &bounds.beta})
    list->assign(list->size(), kInfinity);
}

void LinearGradientError::carry(const LinearState& state, std::size_t a, const GradientStep& step,
                                TokenGradient& bounds) {
  const LinearState::Token& token = state.token();
  const std::size_t keys = token.key.size(), columns = token.value.size();
  bounds.key.resize(keys);
  bounds.value.resize(columns);
  bounds.decay.resize(call_.decay_per_head ? 1 : keys);
  bounds.beta.resize(1);
  if (unbounded_) return lose(bounds);
  std::vector<Sum> of_key(keys), of_decay(bounds.decay.size());
  Sum of_beta;
  for (std::size_t m = 0; m < columns; ++m) carry_column(state, a, step, m, of_key, of_decay, of_beta, bounds.value[m]);
  if (unbounded_) {
    element_.assign(element_.size(), kInfinity);
    return lose(bounds);
  }
  const auto n = static_cast<double>(columns);
  // What the token writes and what it reads back come from a state of which perhaps nothing is known.
  const bool known = !state.error(a).unbounded;
  const bool writes_state = call_.has_beta();
  for (std::size_t d = 0; d < keys; ++d)
    bounds.key[d] = known || !writes_state ? finished(of_key[d], writes_state ? 2 * n : n) : kInfinity;
  for (std::size_t d = 0; d < bounds.decay.size(); ++d)
    bounds.decay[d] =
        known ? finished(of_decay[d], call_.decay_per_head ? n * static_cast<double>(keys) : n) : kInfinity;
  bounds.beta[0] = known ? finished(of_beta, n) : kInfinity;
}

void LinearGradientError::carry_column(const LinearState& state, std::size_t a, const GradientStep& step, std::size_t m,
                                       std::vector<Sum>& of_key, std::vector<Sum>& of_decay, Sum& of_beta,
                                       double& of_value) {
  const AccumulatorLimits limits(arithmetic_);
  const double u = limits.u, eta = limits.eta;
  const LinearState::Token& token = state.token();
  const LinearState::Error& held_error = state.error(a);
  const std::size_t keys = token.key.size(), columns = token.value.size();
  const auto n = static_cast<double>(keys), heads = static_cast<double>(call_.heads_per_group());
  const bool delta = call_.has_beta(), gated = call_.has_decay();
  const double scale = std::max(1.0, std::fabs(call_.scale_value()));
  const double beta = std::fabs(token.beta), key_norm = euclidean_norm(token.key) * kEvaluation;
  // The norm of what carries an old error on, as in LinearState::carry_error.
  const double decay_norm = gated ? *std::max_element(token.decay.begin(), token.decay.end()) : 1;
  const double update_norm = delta ? std::max(1.0, std::fabs(1 - token.beta * key_norm * key_norm)) * kEvaluation : 1;

  // G with the token's loss: a sum of heads + 1 terms in any order, each product with the scale perhaps rounded thrice.
  std::vector<double> arrived(keys);
  double loss_norm = 0, product = 0, operands = 0, carried_product = 0;
  for (std::size_t d = 0; d < keys; ++d) {
    const std::size_t at = d * columns + m;
    const double held = std::fabs(step.later[at]) + element_[at];
    const double fresh = limits.gamma(heads + 4) * step.loss[at] + limits.gamma(heads) * held +
                         scale * eta * (3 * heads + step.operands[at]);
    if (!(scale * (held + step.loss[at]) <= limits.half_range)) unbounded_ = true;
    arrived[d] = element_[at] + fresh;
    loss_norm += fresh * fresh;
    const double key = std::fabs(token.key[d]), size = std::fabs(step.arrived[at]) + arrived[d];
    product += key * size;
    operands += key + size;
    carried_product += key * arrived[d];
  }
  const double arrived_norm = column_[m] + std::sqrt(loss_norm);

  // dw, and beta times it.
  const double of_carried = std::min(carried_product, key_norm * arrived_norm);
  const double fresh_written = limits.gamma(n) * product + eta * (n + operands);
  const double of_written = of_carried + fresh_written, written = std::fabs(step.written[m]);
  const double sent = beta * (written + of_written);
  const double of_sent = delta ? beta * of_written + u * sent + eta : of_written;
  of_value = of_sent * kEvaluation;
  if (delta) of_beta.add(step.written[m], of_written, token.difference[m], held_error.difference[m]);
  const double w = token.beta * token.difference[m];
  const double of_w = delta ? beta * held_error.difference[m] : 0;

  double fresh_norm = 0;
  std::vector<double> passed(keys);
  for (std::size_t d = 0; d < keys; ++d) {
    const std::size_t at = d * columns + m;
    of_key[d].add(step.arrived[at], arrived[d], w, of_w);
    passed[d] = arrived[d];
    if (!delta) continue;
    of_key[d].add(state.decayed()[at], held_error.decayed[at], token.beta * step.written[m], of_sent);
    const double key = std::fabs(token.key[d]), term = key * sent;
    const double size = std::fabs(step.arrived[at]) + arrived[d];
    const double fresh = key * (beta * fresh_written + 2 * eta) + limits.gamma(3) * term + eta * (2 + key + sent) +
                         u * (size + term * (1 + limits.gamma(3)));
    if (!(size + term <= limits.half_range)) unbounded_ = true;
    fresh_norm += fresh * fresh;
    passed[d] = (arrived[d] + key * beta * of_carried + fresh) * kEvaluation;
  }
  const double passed_norm = (update_norm * arrived_norm + std::sqrt(fresh_norm)) * kEvaluation;

  double decay_norm_fresh = 0;
  for (std::size_t d = 0; d < keys; ++d) {
    const std::size_t at = d * columns + m;
    const double off = std::min(passed[d], passed_norm);
    element_[at] = off;
    if (!gated) continue;
    of_decay[call_.decay_per_head ? 0 : d].add(step.decayed[at], off, state.decayed()[at], held_error.decayed[at]);
    const double local =
        decay_error(arithmetic_, token.decay_log[d], token.decay[d], std::fabs(step.decayed[at]) + off);
    decay_norm_fresh += local * local;
    element_[at] = token.decay[d] * off + local;
  }
  column_[m] = (decay_norm * passed_norm + std::sqrt(decay_norm_fresh)) * kEvaluation;
  for (std::size_t d = 0; d < keys; ++d) {
    double& off = element_[d * columns + m];
    off = std::min(off * kEvaluation, column_[m]);
  }
  if (!(product + sent <= limits.half_range)) unbounded_ = true;
}

}  // namespace attest
