// Linear attention of backends/simd: a state for each key head; key heads side by side on host threads.
//
// `linear` and `gated` take kStateChunk tokens at once, as products of matrices (reference/linear/linear_chunk.h has
// the formulas): token by token each of them passes the whole state through the first-level cache. The delta rules,
// chunks of a few tokens, decays too strong to divide by and numbers that are not finite go token by token.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "backends/backend.h"
#include "backends/simd/packed_keys.h"
#include "backends/support/aligned.h"
#include "backends/support/host_results.h"
#include "backends/support/host_threads.h"
#include "backends/support/tiles.h"
#include "backends/support/transpose.h"
#include "reference/call/call.h"

namespace attest::simd {

template <class Real>
class LinearPlan : public Plan {
 public:
  LinearPlan(const Call& call, const Kernels<Real>& kernels, int threads)
      : call_(call),
        kernels_(kernels),
        columns_(padded(call.value_dim, kernels.lanes)),
        state_rows_(padded(call.key_dim, kernels.rows)),
        token_rows_(padded(kStateChunk, kernels.rows)),
        results_(call),
        threads_(threads, call.batch * call.key_heads, dense_multiply_adds(call)) {
    const std::int64_t states = call.batch * call.key_heads;
    results_.state.resize(static_cast<std::size_t>(states * call.key_dim * call.value_dim));
    for (std::int64_t n = 0; n < threads_.workers(); ++n) workers_.emplace_back(*this);
  }

  void upload(const Inputs& inputs) override { inputs_ = inputs; }

  void run() override {
    threads_.each(call_.batch * call_.key_heads, [this](std::int64_t n, std::size_t worker) {
      attend(n / call_.key_heads, n % call_.key_heads, workers_[worker]);
    });
  }

  void download(const Outputs& outputs) override { results_.download(inputs_, outputs); }

  std::size_t workspace_bytes() const override {
    std::size_t numbers = 0;
    for (const Worker& w : workers_)
      numbers += w.state.size() + w.keys.size() + w.turned.size() + w.values.size() + w.logs.size() + w.factors.size() +
                 w.queries.size() + w.scores.size() + w.out.size();
    return numbers * sizeof(Real);
  }

 private:
  static constexpr std::int64_t kFewTokens = 8;  ///< below it products of matrices don't pay

  /// What a thread works in. Rows and columns beyond the call's are 0.
  struct Worker {
    explicit Worker(const LinearPlan& plan) {
      const Call& call = plan.call_;
      const auto allocate = [](support::Aligned<Real>& numbers, std::int64_t rows, std::int64_t columns) {
        numbers.assign(static_cast<std::size_t>(rows * columns), Real{0});
      };
      allocate(state, plan.state_rows_, plan.columns_);
      allocate(keys, kStateChunk, call.key_dim);
      allocate(turned, plan.state_rows_, kStateChunk);
      allocate(values, kStateChunk, plan.columns_);
      allocate(logs, kStateChunk, call.key_dim);
      allocate(factors, kStateChunk, call.key_dim);
      allocate(queries, plan.token_rows_ * call.heads_per_group(), call.key_dim);
      allocate(scores, plan.token_rows_, kStateChunk);
      allocate(out, std::max(plan.token_rows_, call.heads_per_group()), plan.columns_);
      beta.assign(kStateChunk, Real{0});
    }
    support::Aligned<Real> state;                 ///< Dk x Dv
    support::Aligned<Real> keys, values;          ///< of the chunk's tokens
    support::Aligned<Real> turned;                ///< Dk x tokens: keys, divided by the decay since the chunk began
    support::Aligned<Real> logs, factors;         ///< tokens x Dk: of the decay; a power of e for each
    support::Aligned<Real> queries, scores, out;  ///< head by head: tokens x Dk, scaled; tokens x tokens; tokens x Dv
    support::Aligned<Real> beta;
  };

  static std::int64_t padded(std::int64_t n, std::int64_t unit) { return (n + unit - 1) / unit * unit; }

  void attend(std::int64_t b, std::int64_t g, Worker& w) {
    std::fill(w.state.begin(), w.state.end(), Real{0});
    for (std::int64_t d = 0; call_.initial_state && d < call_.key_dim; ++d)
      widen_row(kernels_, inputs_.state(), b, g, d, w.state.data() + d * columns_);
    for (std::int64_t first = 0; first < call_.query_length; first += kStateChunk) {
      const std::int64_t count = std::min(kStateChunk, call_.query_length - first);
      load(b, g, first, count, w);
      if (may_go_together(count, w))
        take_chunk(b, g, first, count, w);
      else
        take_tokens(b, g, first, count, w);
    }
    Real* to = results_.state.data() + (b * call_.key_heads + g) * call_.key_dim * call_.value_dim;
    for (std::int64_t d = 0; d < call_.key_dim; ++d)
      std::copy_n(w.state.data() + d * columns_, call_.value_dim, to + d * call_.value_dim);
  }

  void load(std::int64_t b, std::int64_t g, std::int64_t first, std::int64_t count, Worker& w) const {
    const std::int64_t dim = call_.key_dim;
    const auto scale = static_cast<Real>(call_.scale_value());
    for (std::int64_t t = 0; t < count; ++t) {
      widen_row(kernels_, inputs_.k(), b, g, first + t, w.keys.data() + t * dim);
      widen_row(kernels_, inputs_.v(), b, g, first + t, w.values.data() + t * columns_);
      if (call_.has_decay()) support::read_row(inputs_.decay(), b, g, first + t, w.logs.data() + t * dim);
      if (call_.has_beta()) support::read_row(inputs_.beta(), b, g, first + t, w.beta.data() + t);
      for (std::int64_t h = 0; h < call_.heads_per_group(); ++h) {
        Real* query = w.queries.data() + (h * token_rows_ + t) * dim;
        widen_row(kernels_, inputs_.q(), b, g * call_.heads_per_group() + h, first + t, query);
        for (std::int64_t d = 0; d < dim; ++d) query[d] *= scale;
      }
    }
  }

  bool may_go_together(std::int64_t count, const Worker& w) const {
    if (call_.has_beta() || count < kFewTokens) return false;
    const std::int64_t dim = call_.key_dim;
    const auto finite = [](const Real* numbers, std::int64_t n) {
      return !support::has_non_finite<Real>({numbers, n}, 1, n);
    };
    if (!finite(w.keys.data(), count * dim) || !finite(w.values.data(), count * columns_)) return false;
    for (std::int64_t h = 0; h < call_.heads_per_group(); ++h)
      if (!finite(w.queries.data() + h * token_rows_ * dim, count * dim)) return false;
    for (std::int64_t d = 0; call_.has_decay() && d < dim; ++d) {
      double sum = 0;
      for (std::int64_t t = 0; t < count; ++t)
        sum += std::fabs(static_cast<double>(w.logs[static_cast<std::size_t>(t * dim + d)]));
      if (!(sum <= kChunkNats)) return false;
    }
    return true;
  }

  void take_chunk(std::int64_t b, std::int64_t g, std::int64_t first, std::int64_t count, Worker& w) {
    const std::int64_t dim = call_.key_dim, numbers = count * dim;
    Real* logs = w.logs.data();
    if (call_.has_decay()) {
      for (std::int64_t n = dim; n < numbers; ++n) logs[n] += logs[n - dim];
      for (std::int64_t n = 0; n < numbers; ++n) w.factors[static_cast<std::size_t>(n)] = -logs[n];
      kernels_.exp_row(w.factors.data(), numbers);
      for (std::int64_t n = 0; n < numbers; ++n)
        w.keys[static_cast<std::size_t>(n)] *= w.factors[static_cast<std::size_t>(n)];
      kernels_.exp_row(logs, numbers);
    }
    support::transpose(w.keys.data(), dim, count, dim, Real{1}, w.turned.data(), kStateChunk);
    for (std::int64_t d = 0; count < kStateChunk && d < dim; ++d)
      std::fill_n(w.turned.data() + d * kStateChunk + count, kStateChunk - count, Real{0});
    for (std::int64_t h = 0; h < call_.heads_per_group(); ++h) {
      Real* queries = w.queries.data() + h * token_rows_ * dim;
      for (std::int64_t n = 0; call_.has_decay() && n < numbers; ++n) queries[n] *= logs[n];
      read_chunk(b, g * call_.heads_per_group() + h, first, count, queries, w);
    }
    kernels_.multiply_add({.rows = state_rows_,
                           .columns = columns_,
                           .depth = count,
                           .left = w.turned.data(),
                           .left_stride = kStateChunk,
                           .right = w.values.data(),
                           .right_stride = columns_,
                           .out = w.state.data(),
                           .out_stride = columns_});
    for (std::int64_t d = 0; call_.has_decay() && d < dim; ++d) {
      const Real decay = logs[numbers - dim + d];
      for (std::int64_t c = 0; c < columns_; ++c) w.state[static_cast<std::size_t>(d * columns_ + c)] *= decay;
    }
  }

  /// O of one query head: from the state before the chunk, then from the chunk's own tokens.
  void read_chunk(std::int64_t b, std::int64_t h, std::int64_t first, std::int64_t count, const Real* queries,
                  Worker& w) {
    const std::int64_t dim = call_.key_dim, rows = padded(count, kernels_.rows);
    std::fill_n(w.scores.begin(), rows * kStateChunk, Real{0});
    std::fill_n(w.out.begin(), rows * columns_, Real{0});
    kernels_.multiply_add({.rows = rows,
                           .columns = columns_,
                           .depth = dim,
                           .left = queries,
                           .left_stride = dim,
                           .right = w.state.data(),
                           .right_stride = columns_,
                           .out = w.out.data(),
                           .out_stride = columns_});
    kernels_.multiply_add({.rows = rows,
                           .columns = kStateChunk,
                           .depth = dim,
                           .left = queries,
                           .left_stride = dim,
                           .right = w.turned.data(),
                           .right_stride = kStateChunk,
                           .out = w.scores.data(),
                           .out_stride = kStateChunk,
                           .lower_out = true});
    for (std::int64_t t = 0; t < count; ++t)
      std::fill_n(w.scores.data() + t * kStateChunk + t + 1, kStateChunk - t - 1, Real{0});
    kernels_.multiply_add({.rows = rows,
                           .columns = columns_,
                           .depth = count,
                           .left = w.scores.data(),
                           .left_stride = kStateChunk,
                           .right = w.values.data(),
                           .right_stride = columns_,
                           .out = w.out.data(),
                           .out_stride = columns_,
                           .lower_left = true});
    for (std::int64_t t = 0; t < count; ++t)
      std::copy_n(w.out.data() + t * columns_, call_.value_dim, results_.out_row(results_.row(b, h, first + t)));
  }

  void take_tokens(std::int64_t b, std::int64_t g, std::int64_t first, std::int64_t count, Worker& w) {
    const std::int64_t dim = call_.key_dim;
    if (call_.has_decay()) exponentiate(w.logs.data(), count * dim);
    for (std::int64_t t = 0; t < count; ++t) {
      kernels_.step({.key_dim = dim,
                     .columns = columns_,
                     .heads = call_.heads_per_group(),
                     .is_delta = call_.has_beta(),
                     .key = w.keys.data() + t * dim,
                     .decay = call_.has_decay() ? w.logs.data() + t * dim : nullptr,
                     .value = w.values.data() + t * columns_,
                     .beta = w.beta[static_cast<std::size_t>(t)],
                     .queries = w.queries.data() + t * dim,
                     .query_stride = token_rows_ * dim,
                     .state = w.state.data(),
                     .out = w.out.data(),
                     .out_stride = columns_});
      for (std::int64_t h = 0; h < call_.heads_per_group(); ++h)
        std::copy_n(w.out.data() + h * columns_, call_.value_dim,
                    results_.out_row(results_.row(b, g * call_.heads_per_group() + h, first + t)));
    }
  }

  /// In place, whatever the numbers are: vectors know exp up to kChunkNats.
  void exponentiate(Real* numbers, std::int64_t n) const {
    if (std::all_of(numbers, numbers + n, [](Real x) { return x <= static_cast<Real>(kChunkNats); }))
      kernels_.exp_row(numbers, n);
    else
      std::transform(numbers, numbers + n, numbers, [](Real x) { return std::exp(x); });
  }

  const Call call_;
  const Kernels<Real>& kernels_;
  std::int64_t columns_, state_rows_, token_rows_;  ///< Dv, Dk and a chunk's tokens, padded for the kernels
  Inputs inputs_{};
  support::HostResults<Real> results_;
  const support::HostThreads threads_;
  std::vector<Worker> workers_;
};

}  // namespace attest::simd
