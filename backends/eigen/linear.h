// Linear attention with Eigen: one state per key head, updated token by token; key heads side by side.
//
// Each token costs a product of the state with one vector and a rank-1 update, and the state (Dk x Dv) stays in the
// first-level cache, so that this runs at the cache's bandwidth rather than memory's.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <vector>

#include "backends/backend.h"
#include "backends/support/host_results.h"

namespace attest {

template <class Real>
class EigenLinearPlan : public Plan {
 public:
  EigenLinearPlan(const Call& problem, int threads) : p_(problem), threads_(threads), results_(problem) {
    results_.state.resize(static_cast<std::size_t>(p_.batch * p_.key_heads * p_.key_dim * p_.value_dim));
  }

  void upload(const Inputs& inputs) override { inputs_ = inputs; }

  void run() override {
    const std::int64_t states = p_.batch * p_.key_heads;
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads_) if (states > 1)
    for (std::int64_t n = 0; n < states; ++n) recur(n / p_.key_heads, n % p_.key_heads);
  }

  void download(const Outputs& outputs) override { results_.download(inputs_, outputs); }

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
    Column key(p_.key_dim), decay(p_.key_dim), query(p_.key_dim);
    Row value(p_.value_dim), read(p_.value_dim);
    const auto scale = static_cast<Real>(p_.scale_value());
    for (std::int64_t t = 0; t < p_.query_length; ++t) {
      support::read_row(inputs_.k(), b, g, t, key.data());
      support::read_row(inputs_.v(), b, g, t, value.data());
      if (p_.has_decay()) {
        support::read_row(inputs_.decay(), b, g, t, decay.data());
        for (std::int64_t d = 0; d < p_.key_dim; ++d) state.row(d) *= std::exp(decay[d]);
      }
      if (p_.has_beta()) {
        Real beta = 0;
        support::read_row(inputs_.beta(), b, g, t, &beta);
        read.noalias() = key.transpose() * state;
        value = beta * (value - read);
      }
      state.noalias() += key * value;
      for (std::int64_t h = g * p_.heads_per_group(); h < (g + 1) * p_.heads_per_group(); ++h) {
        support::read_row(inputs_.q(), b, h, t, query.data());
        Eigen::Map<Row> out(results_.out_row(results_.row(b, h, t)), p_.value_dim);
        out.noalias() = query.transpose() * state;
        out *= scale;
      }
    }
  }

  const Call p_;
  int threads_;
  Inputs inputs_{};
  support::HostResults<Real> results_;
};

}  // namespace attest
