// Linear attention as plain loops: the recurrence of reference/linear/linear_attention.h, one key head after another.
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
    results_.state.resize(static_cast<std::size_t>(p_.batch * p_.key_heads * p_.key_dim * p_.value_dim));
  }

  void upload(const Inputs& inputs) override { inputs_ = inputs; }

  void run() override {
    for (std::int64_t b = 0; b < p_.batch; ++b) {
      for (std::int64_t g = 0; g < p_.key_heads; ++g) {
        Real* state = results_.state.data() + (b * p_.key_heads + g) * p_.key_dim * p_.value_dim;
        start(b, g, state);
        for (std::int64_t t = 0; t < p_.query_length; ++t) {
          write(b, g, t, state);
          for (std::int64_t h = g * p_.heads_per_group(); h < (g + 1) * p_.heads_per_group(); ++h) {
            read(b, h, t, state);
          }
        }
      }
    }
  }

  void download(const Outputs& outputs) override { results_.download(inputs_, outputs); }

 private:
  void start(std::int64_t b, std::int64_t g, Real* state) const {
    std::fill_n(state, p_.key_dim * p_.value_dim, Real{0});
    if (!p_.initial_state) return;
    for (std::int64_t d = 0; d < p_.key_dim; ++d) support::read_row(inputs_.state(), b, g, d, state + d * p_.value_dim);
  }

  void write(std::int64_t b, std::int64_t g, std::int64_t t, Real* state) {
    support::read_row(inputs_.k(), b, g, t, key_.data());
    support::read_row(inputs_.v(), b, g, t, value_.data());
    if (p_.has_decay()) {
      support::read_row(inputs_.decay(), b, g, t, decay_.data());
      for (std::int64_t d = 0; d < p_.key_dim; ++d) {
        const Real factor = std::exp(decay_[static_cast<std::size_t>(d)]);
        for (std::int64_t c = 0; c < p_.value_dim; ++c) state[d * p_.value_dim + c] *= factor;
      }
    }
    if (p_.has_beta()) {
      Real beta = 0;
      support::read_row(inputs_.beta(), b, g, t, &beta);
      for (std::int64_t c = 0; c < p_.value_dim; ++c) {
        Real retrieved = 0;
        for (std::int64_t d = 0; d < p_.key_dim; ++d) {
          retrieved += state[d * p_.value_dim + c] * key_[static_cast<std::size_t>(d)];
        }
        Real& value = value_[static_cast<std::size_t>(c)];
        value = beta * (value - retrieved);
      }
    }
    for (std::int64_t d = 0; d < p_.key_dim; ++d) {
      for (std::int64_t c = 0; c < p_.value_dim; ++c) {
        state[d * p_.value_dim + c] += key_[static_cast<std::size_t>(d)] * value_[static_cast<std::size_t>(c)];
      }
    }
  }

  void read(std::int64_t b, std::int64_t h, std::int64_t t, const Real* state) {
    support::read_row(inputs_.q(), b, h, t, query_.data());
    Real* out = results_.out_row(results_.row(b, h, t));
    for (std::int64_t c = 0; c < p_.value_dim; ++c) {
      Real sum = 0;
      for (std::int64_t d = 0; d < p_.key_dim; ++d) {
        sum += query_[static_cast<std::size_t>(d)] * state[d * p_.value_dim + c];
      }
      out[c] = static_cast<Real>(p_.scale_value()) * sum;
    }
  }

  const Call p_;
  Inputs inputs_{};
  std::vector<Real> key_, query_, decay_, value_;
  support::HostResults<Real> results_;
};

}  // namespace attest::example
