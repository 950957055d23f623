#include "reference/linear/linear_attention.h"

#include <algorithm>
#include <cmath>

#include "reference/base/reference_uses.h"
#include "reference/linear/linear_rounding.h"
#include "reference/linear/linear_rows.h"

namespace attest {
namespace {

double read(const ConstTensor& t, std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
  return load(t.data, t.dtype, t.offset(b, h, l, d));
}

}  // namespace

LinearState::LinearState(const Call& p, const Inputs& inputs, std::int64_t b, std::int64_t key_head,
                         const std::vector<Arithmetic>& arithmetics)
    : call_(p), inputs_(inputs), b_(b), key_head_(key_head), arithmetics_(arithmetics) {
  const auto keys = static_cast<std::size_t>(p.key_dim), columns = static_cast<std::size_t>(p.value_dim);
  state_.resize(keys * columns);
  for (std::int64_t d = 0; inputs.state().data && d < p.key_dim; ++d) {
    for (std::int64_t m = 0; m < p.value_dim; ++m) {
      state_[static_cast<std::size_t>(d * p.value_dim + m)] = attest::read(inputs.state(), b, key_head, d, m);
    }
  }
  decayed_ = state_;
  const std::vector<double> of_elements(keys * columns), of_columns(columns);
  errors_.assign(arithmetics.size(), {of_elements, of_columns, of_elements, of_columns, false, {}});
  for (std::size_t a = 0; a < errors_.size(); ++a) {
    errors_[a].unbounded = states_products(arithmetics_[a]);  // they are said of other products
    if (arithmetics_[a].state_chunk == 0) continue;
    errors_[a].unbounded = errors_[a].unbounded || p.has_beta();
    errors_[a].chunk.emplace(keys, columns);
  }
  token_.key.resize(keys);
  token_.decay_log.resize(keys);
  token_.decay.assign(keys, 1.0);
  token_.value.resize(columns);
  token_.difference.resize(columns);
}

void LinearState::read_token() {
  const std::int64_t t = tokens_;
  token_.root = read_linear_row(call_, inputs_.k(), b_, call_.qk_head(key_head_), t, token_.key);
  for (std::size_t d = 0; call_.has_decay() && d < token_.decay.size(); ++d) {
    const auto at = static_cast<std::int64_t>(d);
    token_.decay_log[d] = attest::read(inputs_.decay(), b_, key_head_, t, at);
    token_.decay[d] = std::exp(token_.decay_log[d]);
  }
  for (std::size_t m = 0; m < token_.value.size(); ++m) {
    token_.value[m] = attest::read(inputs_.v(), b_, key_head_, t, static_cast<std::int64_t>(m));
  }
  if (call_.has_beta()) token_.beta = attest::read(inputs_.beta(), b_, key_head_, t, 0);
}

void LinearState::step() {
  count_reference_use();
  read_token();
  const std::vector<double> before = errors_.empty() ? std::vector<double>{} : state_;
  const std::vector<double>& key = token_.key;
  const std::size_t keys = key.size(), columns = token_.value.size();
  std::vector<double> retrieved(columns);
  for (std::size_t d = 0; d < keys; ++d) {
    for (std::size_t m = 0; m < columns; ++m) {
      double& s = state_[d * columns + m];
      decayed_[d * columns + m] = s *= token_.decay[d];
      retrieved[m] += key[d] * s;
    }
  }
  for (std::size_t m = 0; m < columns; ++m) {
    token_.difference[m] = call_.has_beta() ? token_.value[m] - retrieved[m] : token_.value[m];
  }
  for (std::size_t d = 0; d < keys; ++d) {
    for (std::size_t m = 0; m < columns; ++m) {
      state_[d * columns + m] += key[d] * (token_.beta * token_.difference[m]);
    }
  }
  for (std::size_t a = 0; a < errors_.size(); ++a) {
    Error& error = errors_[a];
    if (error.chunk) {
      if (tokens_ % arithmetics_[a].state_chunk == 0) turn_chunk(arithmetics_[a], before, error);
      const std::vector<double> off =
          linear_row_error(call_, token_.key, token_.root, AccumulatorLimits(arithmetics_[a]));
      error.chunk->add(largest_of_row(token_.key, off), token_.value,
                       call_.has_decay() ? token_.decay_log : std::vector<double>{}, off);
    }
    carry_error(arithmetics_[a], before, error);
  }
  ++tokens_;
}

void LinearState::turn_chunk(const Arithmetic& a, const std::vector<double>& before, Error& error) const {
  if (tokens_ > 0 && error.chunk->together()) {
    const std::vector<double> bound = error.chunk->state_bound(a);
    const std::size_t columns = token_.value.size();
    for (std::size_t m = 0; m < columns; ++m) {
      double square = 0;
      for (std::size_t at = m; at < bound.size(); at += columns) {
        square += bound[at] * bound[at];
        error.element[at] = std::max(error.element[at], bound[at]);
      }
      error.column[m] = std::max(error.column[m], std::sqrt(square) * kEvaluation);
      if (!(error.column[m] < kInfinity)) error.unbounded = true;
    }
  }
  error.chunk->begin(before, error.element);
}

void LinearState::carry_error(const Arithmetic& a, const std::vector<double>& before, Error& error) const {
  if (error.unbounded) return;
  const AccumulatorLimits limits(a);
  const double u = limits.u, eta = limits.eta;
  const std::size_t keys = token_.key.size(), columns = token_.value.size();
  const auto n = static_cast<double>(keys);
  const bool delta = call_.has_beta(), gated = call_.has_decay();
  // The key as computed is off by `off`, and at most this large.
  const std::vector<double> off = linear_row_error(call_, token_.key, token_.root, limits),
                            key = largest_of_row(token_.key, off);
  const double beta = std::fabs(token_.beta), key_norm = euclidean_norm(key) * kEvaluation;
  const double stretch = stretch_of(token_.root);
  // The norm of what carries an old error on: the decay, then I - beta k k^T.
  const double decay_norm = gated ? *std::max_element(token_.decay.begin(), token_.decay.end()) : 1;
  // The two k may be rounded apart.
  const double update_norm = delta ? (std::max(1.0, std::fabs(1 - token_.beta * key_norm * key_norm)) +
                                      2 * beta * key_norm * euclidean_norm(off)) *
                                         kEvaluation
                                   : 1;

  std::vector<double> carried(keys), magnitude(keys);
  for (std::size_t m = 0; m < columns; ++m) {
    double local_norm = 0, product = 0, operands = 0, carried_product = 0, of_key = 0;
    for (std::size_t d = 0; d < keys; ++d) {
      const std::size_t at = d * columns + m;
      const double held = std::fabs(before[at]) + error.element[at];
      double local = 0;
      if (gated) {
        local = decay_error(a, token_.decay_log[d], token_.decay[d], held);
      }
      error.decayed[at] = carried[d] = token_.decay[d] * error.element[at] + local;
      magnitude[d] = token_.decay[d] * held + local;
      local_norm += local * local;
      product += key[d] * magnitude[d];
      operands += key[d] + magnitude[d];
      carried_product += key[d] * carried[d];
      of_key += off[d] * magnitude[d];
    }
    local_norm = std::sqrt(local_norm);
    const double carried_norm = decay_norm * error.column[m] + local_norm;

    // v - S^T k, its share of the old error apart, and beta times it.
    double written = std::fabs(token_.value[m]), of_written = 0, of_retrieval = 0;
    if (delta) {
      of_retrieval = std::min(carried_product, key_norm * carried_norm);
      const double fresh = limits.gamma(n + 2) * product + of_key + stretch * eta * (n + 2 + operands);
      const double difference = std::fabs(token_.difference[m]) + of_retrieval + fresh;
      written = beta * difference;
      of_written = beta * fresh + limits.gamma(3) * written + 3 * eta;
      error.difference[m] = (of_retrieval + fresh) * kEvaluation;
    }
    double fresh_norm = 0;
    std::vector<double>& element = error.element;
    for (std::size_t d = 0; d < keys; ++d) {
      const double term = key[d] * written;
      const double fresh = key[d] * of_written + off[d] * written + limits.gamma(2) * term +
                           stretch * eta * (2 + key[d] + written) + u * (magnitude[d] + term * (1 + limits.gamma(2)));
      if (!(magnitude[d] + term <= limits.half_range)) error.unbounded = true;
      fresh_norm += fresh * fresh;
      element[d * columns + m] = (carried[d] + (delta ? key[d] * beta * of_retrieval : 0) + fresh) * kEvaluation;
    }
    error.column[m] = (update_norm * carried_norm + std::sqrt(fresh_norm)) * kEvaluation;
    for (std::size_t d = 0; d < keys; ++d) {
      element[d * columns + m] = std::min(element[d * columns + m], error.column[m]);
    }
    if (!((product + written) * stretch <= limits.half_range)) error.unbounded = true;
  }
}

std::vector<double> LinearState::bounds(std::size_t a) const {
  const Error& error = errors_[a];
  if (error.unbounded) return std::vector<double>(state_.size(), kInfinity);
  std::vector<double> bound = error.element;
  if (!error.chunk || tokens_ == 0 || !error.chunk->together()) return bound;
  const std::vector<double> of_chunk = error.chunk->state_bound(arithmetics_[a]);
  for (std::size_t n = 0; n < bound.size(); ++n) bound[n] = std::max(bound[n], of_chunk[n]);
  return bound;
}

void LinearState::read(std::int64_t h, std::int64_t i, std::vector<double>& output) const {
  const std::size_t columns = token_.value.size();
  output.assign(columns, 0.0);
  std::vector<double> query;
  read_linear_row(call_, inputs_.q(), b_, call_.qk_head(h), i, query);
  for (std::size_t d = 0; d < query.size(); ++d) {
    for (std::size_t m = 0; m < columns; ++m) output[m] += query[d] * state_[d * columns + m];
  }
  for (double& o : output) o *= call_.scale_value();
}

void LinearState::bound_read(std::size_t a, std::int64_t h, std::int64_t i, std::vector<double>& bound) const {
  const AccumulatorLimits limits(arithmetics_[a]);
  const Error& error = errors_[a];
  const std::size_t keys = token_.key.size(), columns = token_.value.size();
  const auto n = static_cast<double>(keys);
  const double scale = std::fabs(call_.scale_value());
  std::vector<double> row;
  const double root = read_linear_row(call_, inputs_.q(), b_, call_.qk_head(h), i, row);
  const std::vector<double> of_query = linear_row_error(call_, row, root, limits),
                            query = largest_of_row(row, of_query);
  const double query_norm = euclidean_norm(query) * kEvaluation;
  const double larger = std::max(1.0, scale) * stretch_of(root);
  bound.assign(columns, kInfinity);
  for (std::size_t m = 0; m < columns && !error.unbounded; ++m) {
    double magnitude = 0, carried = 0, held = 0, wrong = 0;
    for (std::size_t d = 0; d < keys; ++d) {
      const double off = error.element[d * columns + m], size = std::fabs(state_[d * columns + m]) + off;
      magnitude += query[d] * size;
      carried += query[d] * off;
      wrong += of_query[d] * size;
      held += query[d] + size;
    }
    // scale and the norm's factor may multiply the query or the sum; either product may underflow.
    if (!(magnitude * larger <= limits.half_range)) continue;
    carried = std::min(carried, query_norm * error.column[m]) + wrong;
    bound[m] =
        (scale * (carried + limits.gamma(n + 3) * magnitude) + larger * limits.eta * (n + 3 + held)) * kEvaluation;
  }
  if (error.unbounded || !error.chunk || !error.chunk->together()) return;
  const std::vector<double> of_chunk = error.chunk->read_bound(arithmetics_[a], query, scale, of_query);
  for (std::size_t m = 0; m < columns; ++m) bound[m] = std::max(bound[m], of_chunk[m]);
}

void LinearState::read_gradient(std::int64_t h, std::int64_t i, std::vector<double>& dq) const {
  const std::size_t keys = token_.key.size(), columns = token_.value.size();
  dq.assign(keys, 0);
  for (std::size_t m = 0; m < columns; ++m) {
    const double loss = attest::read(inputs_.dout(), b_, h, i, static_cast<std::int64_t>(m));
    for (std::size_t d = 0; d < keys; ++d) dq[d] += state_[d * columns + m] * loss;
  }
  for (double& x : dq) x *= call_.scale_value();
}

void LinearState::bound_gradient(std::size_t a, std::int64_t h, std::int64_t i, std::vector<double>& bound) const {
  const AccumulatorLimits limits(arithmetics_[a]);
  const Error& error = errors_[a];
  const std::size_t keys = token_.key.size(), columns = token_.value.size();
  const auto n = static_cast<double>(columns);
  const double scale = std::fabs(call_.scale_value());
  bound.assign(keys, kInfinity);
  if (error.unbounded || error.chunk) return;
  for (std::size_t d = 0; d < keys; ++d) {
    double magnitude = 0, carried = 0, held = 0;
    for (std::size_t m = 0; m < columns; ++m) {
      const double loss = std::fabs(attest::read(inputs_.dout(), b_, h, i, static_cast<std::int64_t>(m)));
      const double off = error.element[d * columns + m], size = std::fabs(state_[d * columns + m]) + off;
      magnitude += size * loss;
      carried += off * loss;
      held += size + loss;
    }
    if (!(magnitude * std::max(1.0, scale) <= limits.half_range)) continue;
    bound[d] =
        (scale * (carried + limits.gamma(n + 3) * magnitude) + std::max(1.0, scale) * limits.eta * (n + 3 + held)) *
        kEvaluation;
  }
}

}  // namespace attest
