// Linear attention with xtensor: one state per key head, updated token by token; key heads side by side.
//
// The state and the vectors of a token are xtensor containers, allocated once. Reading the state is BLAS's gemv and
// writing it BLAS's ger, through xtensor-blas; a decay scales rows by xtensor's expressions.
#pragma once

#include <omp.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>
#include <xtensor-blas/xblas.hpp>
#include <xtensor/xadapt.hpp>
#include <xtensor/xnoalias.hpp>
#include <xtensor/xtensor.hpp>

#include "backends/backend.h"
#include "backends/support/host_results.h"

namespace attest {

template <class Real>
class XtensorLinearPlan : public Plan {
 public:
  XtensorLinearPlan(const Call& call, int threads) : call_(call), results_(call) {
    const std::int64_t states = call.batch * call.key_heads;
    results_.state.resize(static_cast<std::size_t>(states * call.key_dim * call.value_dim));
    for (int n = 0; n < std::max(threads, 1); ++n) workers_.emplace_back(call);
  }

  void upload(const Inputs& inputs) override { inputs_ = inputs; }

  void run() override {
    const std::int64_t states = call_.batch * call_.key_heads;
#pragma omp parallel for schedule(dynamic, 1) num_threads(static_cast <int>(workers_.size())) if (states > 1)
    for (std::int64_t n = 0; n < states; ++n)
      recur(n / call_.key_heads, n % call_.key_heads, workers_[static_cast<std::size_t>(omp_get_thread_num())]);
  }

  void download(const Outputs& outputs) override { results_.download(inputs_, outputs); }

 private:
  using Vector = xt::xtensor<Real, 1>;

  /// Vectors of one token.
  struct Worker {
    explicit Worker(const Call& call)
        : key(std::array{static_cast<std::size_t>(call.key_dim)}),
          decay(key),
          query(key),
          value(std::array{static_cast<std::size_t>(call.value_dim)}),
          read(value) {}
    Vector key, decay, query, value, read;
  };

  static auto vector_at(Real* data, std::int64_t n) {
    const auto size = static_cast<std::size_t>(n);
    return xt::adapt<xt::layout_type::row_major>(data, size, xt::no_ownership(), std::array{size});
  }

  void recur(std::int64_t b, std::int64_t g, Worker& w) {
    const std::int64_t keys = call_.key_dim, columns = call_.value_dim;
    Real* rows = results_.state.data() + (b * call_.key_heads + g) * keys * columns;
    auto state = xt::adapt<xt::layout_type::row_major>(
        rows, static_cast<std::size_t>(keys * columns), xt::no_ownership(),
        std::array{static_cast<std::size_t>(keys), static_cast<std::size_t>(columns)});
    state.fill(Real{0});
    for (std::int64_t d = 0; call_.initial_state && d < keys; ++d)
      support::read_row(inputs_.state(), b, g, d, rows + d * columns);
    const auto scale = static_cast<Real>(call_.scale_value());
    for (std::int64_t t = 0; t < call_.query_length; ++t) {
      support::read_row(inputs_.k(), b, g, t, w.key.data());
      support::read_row(inputs_.v(), b, g, t, w.value.data());
      if (call_.has_decay()) {
        support::read_row(inputs_.decay(), b, g, t, w.decay.data());
        for (std::int64_t d = 0; d < keys; ++d)
          vector_at(rows + d * columns, columns) *= std::exp(w.decay(static_cast<std::size_t>(d)));
      }
      if (call_.has_beta()) {
        Real beta = 0;
        support::read_row(inputs_.beta(), b, g, t, &beta);
        xt::blas::gemv(state, w.key, w.read, true);
        xt::noalias(w.value) = beta * (w.value - w.read);
      }
      xt::blas::ger(w.key, w.value, state);
      for (std::int64_t h = g * call_.heads_per_group(); h < (g + 1) * call_.heads_per_group(); ++h) {
        support::read_row(inputs_.q(), b, h, t, w.query.data());
        auto out = vector_at(results_.out_row(results_.row(b, h, t)), columns);
        xt::blas::gemv(state, w.query, w.read, true);
        xt::noalias(out) = scale * w.read;
      }
    }
  }

  const Call call_;
  Inputs inputs_{};
  support::HostResults<Real> results_;
  std::vector<Worker> workers_;
};

}  // namespace attest
