// Linear attention with Eigen: one state per key head, updated token by token; key heads side by side.
//
// Each token costs a product of the state with one vector and a rank-1 update, and the state (Dk x Dv) stays in the
// first-level cache, so that this runs at the cache's bandwidth rather than memory's.
#pragma once

#include <omp.h>

#include <Eigen/Core>
#include <algorithm>
#include <cstdint>
#include <vector>

#include "backends/backend.h"
#include "backends/eigen/linear_gradients.h"
#include "backends/support/host_results.h"

namespace attest {

template <class Real>
class EigenLinearPlan : public Plan {
 public:
  EigenLinearPlan(const Call& problem, int threads) : p_(problem), threads_(threads), results_(problem) {
    results_.state.resize(static_cast<std::size_t>(p_.batch * p_.key_heads * p_.key_dim * p_.value_dim));
    if (p_.wants_gradients()) {
      for (int n = 0; n < threads; ++n) gradients_.emplace_back(p_, results_);
    }
    if (p_.wants(Output::dbeta)) of_betas_.resize(static_cast<std::size_t>(p_.batch * p_.key_heads * p_.key_length));
  }

  void upload(const Inputs& inputs) override { inputs_ = inputs; }

  void run() override {
    const std::int64_t states = p_.batch * p_.key_heads;
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads_) if (states > 1)
    for (std::int64_t n = 0; n < states; ++n) recur(n / p_.key_heads, n % p_.key_heads);
    if (p_.wants(Output::dbeta)) add_betas();
  }

  void download(const Outputs& outputs) override { results_.download(inputs_, outputs); }

  std::size_t workspace_bytes() const override {
    return gradients_.empty() ? 0 : gradients_.size() * gradients_[0].workspace_bytes();
  }

 private:
  using State = Eigen::Map<Eigen::Matrix<Real, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>;
  using Row = Eigen::Matrix<Real, 1, Eigen::Dynamic>;
  using Column = Eigen::Matrix<Real, Eigen::Dynamic, 1>;

  void recur(std::int64_t b, std::int64_t g) {
    State state(results_.state.data() + (b * p_.key_heads + g) * p_.key_dim * p_.value_dim, p_.key_dim, p_.value_dim);
    state.setZero();
    for (std::int64_t d = 0; p_.initial_state && d < p_.key_dim; ++d) {
      support::read_row(inputs_.state(), b, g, d, state.row(d).data());
    }
    EigenLinearGradients<Real>* gradients =
        p_.wants_gradients() ? &gradients_[static_cast<std::size_t>(omp_get_thread_num())] : nullptr;
    Column query(p_.key_dim);
    Row write(p_.value_dim);
    EigenToken<Real> token(p_);
    const auto scale = static_cast<Real>(p_.scale_value());
    for (std::int64_t t = 0; t < p_.query_count(b); ++t) {
      if (gradients) gradients->keep_state(t, state);
      token.read(p_, inputs_, b, g, t);
      token.decay_state(p_, state);
      token.find_difference(p_, state);
      write = token.beta * token.difference;
      state.noalias() += token.key * write;
      for (std::int64_t h = g * p_.heads_per_group(); h < (g + 1) * p_.heads_per_group(); ++h) {
        if (gradients) gradients->differentiate_query(inputs_, b, h, t, state);
        if (!p_.runs_forward()) continue;
        support::read_row(inputs_.q(), b, p_.qk_head(h), t, query.data());
        Eigen::Map<Row> out(results_.out_row(results_.row(b, h, t)), p_.value_dim);
        out.noalias() = query.transpose() * state;
        out *= p_.l2norm ? scale * reciprocal_length(p_, query) : scale;
      }
    }
    if (gradients) {
      Real* of_beta = of_betas_.empty() ? nullptr : of_betas_.data() + (b * p_.key_heads + g) * p_.key_length;
      gradients->differentiate(inputs_, b, g, of_beta);
    }
  }

  /// One beta for all key heads has the sum of their gradients, in this order whatever thread was first.
  void add_betas() {
    std::fill(results_.dbeta.begin(), results_.dbeta.end(), Real{0});
    for (std::int64_t n = 0; n < p_.batch * p_.key_heads; ++n) {
      const std::int64_t to = (p_.beta_shared ? n / p_.key_heads : n) * p_.key_length;
      for (std::int64_t t = 0; t < p_.key_length; ++t)
        results_.dbeta[static_cast<std::size_t>(to + t)] += of_betas_[static_cast<std::size_t>(n * p_.key_length + t)];
    }
  }

  const Call p_;
  int threads_;
  Inputs inputs_{};
  support::HostResults<Real> results_;
  std::vector<EigenLinearGradients<Real>> gradients_;  ///< one for each thread
  std::vector<Real> of_betas_;                         ///< B,Hkv,L
};

}  // namespace attest
