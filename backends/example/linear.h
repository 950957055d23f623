// Linear attention as plain loops: the recurrence of reference/linear/linear_attention.h, one key head after another.
// Gradients go through the tokens once more, from the last to the first, with the state in front of each kept.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "backends/backend.h"
#include "backends/support/host_results.h"

namespace attest::example {

template <class Real>
class LinearPlan : public Plan {
 public:
  explicit LinearPlan(const Call& problem)
      : p_(problem),
        key_(static_cast<std::size_t>(problem.key_dim)),
        query_(key_.size()),
        decay_(key_.size()),
        value_(static_cast<std::size_t>(problem.value_dim)),
        results_(problem) {
    const auto elements = static_cast<std::size_t>(p_.key_dim * p_.value_dim);
    results_.state.resize(static_cast<std::size_t>(p_.batch * p_.key_heads) * elements);
    if (!p_.wants_gradients()) return;
    before_.resize(static_cast<std::size_t>(p_.query_length) * elements);
    gradient_.resize(elements);
    loss_.resize(value_.size());
  }

  void upload(const Inputs& inputs) override { inputs_ = inputs; }

  void run() override {
    results_.clear_gradients();
    for (std::int64_t b = 0; b < p_.batch; ++b) {
      for (std::int64_t g = 0; g < p_.key_heads; ++g) {
        Real* state = results_.state.data() + (b * p_.key_heads + g) * p_.key_dim * p_.value_dim;
        start(b, g, state);
        for (std::int64_t t = 0; t < p_.query_count(b); ++t) {
          if (p_.wants_gradients()) std::copy_n(state, p_.key_dim * p_.value_dim, before(t));
          write(b, g, t, state);
          for (std::int64_t h = g * p_.heads_per_group(); h < (g + 1) * p_.heads_per_group(); ++h) {
            if (p_.runs_forward()) read(b, h, t, state);
            if (p_.wants_gradients()) differentiate_query(b, h, t, state);
          }
        }
        if (p_.wants_gradients()) differentiate(b, g);
      }
    }
  }

  void download(const Outputs& outputs) override { results_.download(inputs_, outputs); }

  std::size_t workspace_bytes() const override { return before_.size() * sizeof(Real); }

 private:
  Real* before(std::int64_t t) { return before_.data() + t * p_.key_dim * p_.value_dim; }

  void start(std::int64_t b, std::int64_t g, Real* state) const {
    std::fill_n(state, p_.key_dim * p_.value_dim, Real{0});
    if (!p_.initial_state) return;
    for (std::int64_t d = 0; d < p_.key_dim; ++d) support::read_row(inputs_.state(), b, g, d, state + d * p_.value_dim);
  }

  /// x / sqrt(sum of x^2 + eps), where the call asks for it.
  void normalise(std::vector<Real>& x) const {
    if (!p_.l2norm) return;
    Real squares = 0;
    for (const Real one : x) squares += one * one;
    const Real root = std::sqrt(squares + static_cast<Real>(*p_.l2norm));
    for (Real& one : x) one /= root;
  }

  /// Reads the token and decays the state. What the token writes, before beta multiplies it, stands in value_ then.
  void prepare_write(std::int64_t b, std::int64_t g, std::int64_t t, Real* state) {
    support::read_row(inputs_.k(), b, p_.qk_head(g), t, key_.data());
    normalise(key_);
    support::read_row(inputs_.v(), b, g, t, value_.data());
    if (p_.has_decay()) {
      support::read_row(inputs_.decay(), b, g, t, decay_.data());
      for (std::int64_t d = 0; d < p_.key_dim; ++d) {
        Real& factor = decay_[static_cast<std::size_t>(d)];
        factor = std::exp(factor);
        for (std::int64_t c = 0; c < p_.value_dim; ++c) state[d * p_.value_dim + c] *= factor;
      }
    }
    beta_ = 1;
    if (!p_.has_beta()) return;
    support::read_row(inputs_.beta(), b, g, t, &beta_);
    for (std::int64_t c = 0; c < p_.value_dim; ++c) {
      Real retrieved = 0;
      for (std::int64_t d = 0; d < p_.key_dim; ++d)
        retrieved += state[d * p_.value_dim + c] * key_[static_cast<std::size_t>(d)];
      value_[static_cast<std::size_t>(c)] -= retrieved;
    }
  }

  void write(std::int64_t b, std::int64_t g, std::int64_t t, Real* state) {
    prepare_write(b, g, t, state);
    for (Real& value : value_) value *= beta_;
    for (std::int64_t d = 0; d < p_.key_dim; ++d) {
      for (std::int64_t c = 0; c < p_.value_dim; ++c) {
        state[d * p_.value_dim + c] += key_[static_cast<std::size_t>(d)] * value_[static_cast<std::size_t>(c)];
      }
    }
  }

  void read(std::int64_t b, std::int64_t h, std::int64_t t, const Real* state) {
    support::read_row(inputs_.q(), b, p_.qk_head(h), t, query_.data());
    normalise(query_);
    Real* out = results_.out_row(results_.row(b, h, t));
    for (std::int64_t c = 0; c < p_.value_dim; ++c) {
      Real sum = 0;
      for (std::int64_t d = 0; d < p_.key_dim; ++d) {
        sum += query_[static_cast<std::size_t>(d)] * state[d * p_.value_dim + c];
      }
      out[c] = static_cast<Real>(p_.scale_value()) * sum;
    }
  }

  /// dq = scale * S do.
  void differentiate_query(std::int64_t b, std::int64_t h, std::int64_t t, const Real* state) {
    support::read_row(inputs_.dout(), b, h, t, loss_.data());
    Real* dq = results_.dq.data() + results_.row(b, h, t) * static_cast<std::size_t>(p_.key_dim);
    for (std::int64_t d = 0; d < p_.key_dim; ++d) {
      Real sum = 0;
      for (std::int64_t c = 0; c < p_.value_dim; ++c)
        sum += state[d * p_.value_dim + c] * loss_[static_cast<std::size_t>(c)];
      dq[d] = static_cast<Real>(p_.scale_value()) * sum;
    }
  }

  /// The other gradients of a key head. gradient_ holds the derivatives by the state behind the token, then by the
  /// decayed one, then by the one in front of it.
  void differentiate(std::int64_t b, std::int64_t g) {
    std::fill(gradient_.begin(), gradient_.end(), Real{0});
    for (std::int64_t d = 0; inputs_.dpresent() && d < p_.key_dim; ++d)
      support::read_row(*inputs_.dpresent(), b, g, d, gradient_.data() + d * p_.value_dim);
    for (std::int64_t t = p_.query_length - 1; t >= 0; --t) {
      Real* state = before(t);
      prepare_write(b, g, t, state);
      for (std::int64_t h = g * p_.heads_per_group(); h < (g + 1) * p_.heads_per_group(); ++h) add_loss(b, h, t);
      differentiate_write(b, g, t, state);
    }
    if (results_.dstate.empty()) return;
    std::copy(gradient_.begin(), gradient_.end(),
              results_.dstate.begin() + (b * p_.key_heads + g) * p_.key_dim * p_.value_dim);
  }

  void add_loss(std::int64_t b, std::int64_t h, std::int64_t t) {
    support::read_row(inputs_.q(), b, h, t, query_.data());
    support::read_row(inputs_.dout(), b, h, t, loss_.data());
    for (std::int64_t d = 0; d < p_.key_dim; ++d) {
      const Real query = static_cast<Real>(p_.scale_value()) * query_[static_cast<std::size_t>(d)];
      for (std::int64_t c = 0; c < p_.value_dim; ++c)
        gradient_[static_cast<std::size_t>(d * p_.value_dim + c)] += query * loss_[static_cast<std::size_t>(c)];
    }
  }

  /// `state` is the decayed one, value_ what the token writes without beta.
  void differentiate_write(std::int64_t b, std::int64_t g, std::int64_t t, const Real* state) {
    const std::int64_t token = (b * p_.key_heads + g) * p_.key_length + t;
    Real* dk = results_.dk.data() + token * p_.key_dim;
    Real* dv = results_.dv.data() + token * p_.value_dim;
    Real of_beta = 0;
    for (std::int64_t c = 0; c < p_.value_dim; ++c) {
      Real sum = 0;
      for (std::int64_t d = 0; d < p_.key_dim; ++d)
        sum += gradient_[static_cast<std::size_t>(d * p_.value_dim + c)] * key_[static_cast<std::size_t>(d)];
      of_beta += sum * value_[static_cast<std::size_t>(c)];
      dv[c] = beta_ * sum;
    }
    for (std::int64_t d = 0; d < p_.key_dim; ++d) {
      const Real key = key_[static_cast<std::size_t>(d)];
      Real of_key = 0, of_decay = 0;
      for (std::int64_t c = 0; c < p_.value_dim; ++c) {
        Real& element = gradient_[static_cast<std::size_t>(d * p_.value_dim + c)];
        const Real held = state[d * p_.value_dim + c];
        of_key += element * (beta_ * value_[static_cast<std::size_t>(c)]);
        if (p_.has_beta()) {
          of_key -= held * dv[c];
          element -= key * dv[c];
        }
        of_decay += element * held;
        if (p_.has_decay()) element *= decay_[static_cast<std::size_t>(d)];
      }
      dk[d] = of_key;
      if (!results_.ddecay.empty())
        results_.ddecay[static_cast<std::size_t>(p_.decay_per_head ? token : token * p_.key_dim + d)] += of_decay;
    }
    if (!results_.dbeta.empty())
      results_.dbeta[static_cast<std::size_t>(p_.beta_shared ? b * p_.key_length + t : token)] += of_beta;
  }

  const Call p_;
  Inputs inputs_{};
  std::vector<Real> key_, query_, decay_, value_;
  Real beta_ = 1;
  // Of gradients.
  std::vector<Real> before_, gradient_, loss_;
  support::HostResults<Real> results_;
};

}  // namespace attest::example
