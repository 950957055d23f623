// Gradients of linear attention with Eigen, for one key head at a time.
//
// On the way forward the states in front of every so many tokens are kept, and dq is computed while the state is there.
// On the way back each run of tokens gets its states once more, which stay in the cache, and each token costs two walks
// over G, the derivatives by the state, and one over the state: a row is read once for all that it gives.
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "backends/support/host_results.h"
#include "reference/call/call.h"

namespace attest {

/// What a row of q or k is multiplied by to become of length 1, but for eps.
template <class Row>
typename Row::Scalar reciprocal_length(const Call& p, const Row& row) {
  using Real = typename Row::Scalar;
  return 1 / std::sqrt(row.squaredNorm() + static_cast<Real>(*p.l2norm));
}

/// What one token writes to the state of a key head.
template <class Real>
struct EigenToken {
  Eigen::Matrix<Real, Eigen::Dynamic, 1> key, decay;
  Eigen::Matrix<Real, 1, Eigen::Dynamic> value, difference;  ///< v, and v - S^T k under the delta rules
  Real beta = 1;

  explicit EigenToken(const Call& p) : key(p.key_dim), decay(p.key_dim), value(p.value_dim), difference(p.value_dim) {}

  void read(const Call& p, const Inputs& inputs, std::int64_t b, std::int64_t g, std::int64_t t) {
    support::read_row(inputs.k(), b, p.qk_head(g), t, key.data());
    if (p.l2norm) key *= reciprocal_length(p, key);
    support::read_row(inputs.v(), b, g, t, value.data());
    if (p.has_beta()) support::read_row(inputs.beta(), b, g, t, &beta);
    if (!p.has_decay()) return;
    support::read_row(inputs.decay(), b, g, t, decay.data());
    for (std::int64_t d = 0; d < p.key_dim; ++d) decay[d] = std::exp(decay[d]);
  }
  template <class State>
  void decay_state(const Call& p, State& state) const {
    for (std::int64_t d = 0; p.has_decay() && d < p.key_dim; ++d) state.row(d) *= decay[d];
  }
  template <class State>
  void find_difference(const Call& p, const State& decayed) {
    difference = value;
    if (p.has_beta()) difference.noalias() -= key.transpose() * decayed;
  }
};

template <class Real>
class EigenLinearGradients {
 public:
  using Matrix = Eigen::Map<Eigen::Matrix<Real, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>;
  using Row = Eigen::Matrix<Real, 1, Eigen::Dynamic>;

  /// Keeps a reference to the results.
  EigenLinearGradients(const Call& p, support::HostResults<Real>& results)
      : p_(p),
        results_(&results),
        run_(std::clamp<std::int64_t>(std::lround(std::sqrt(static_cast<double>(p.query_length))), 1, 64)),
        elements_(p.key_dim * p.value_dim),
        starts_(count((p.query_length + run_ - 1) / run_ * elements_)),
        decayed_(count(run_ * elements_)),
        gradient_(count(elements_)),
        queries_(count(p.heads_per_group() * p.key_dim)),
        losses_(count(p.heads_per_group() * p.value_dim)),
        tokens_(count(run_), EigenToken<Real>(p)),
        written_(p.value_dim),
        write_(p.value_dim),
        of_value_(p.value_dim) {}

  std::size_t workspace_bytes() const {
    return (starts_.size() + decayed_.size() + gradient_.size() + queries_.size() + losses_.size()) * sizeof(Real);
  }

  /// The state in front of token t, on the way forward.
  void keep_state(std::int64_t t, const Matrix& state) {
    if (t % run_ == 0) std::copy_n(state.data(), elements_, starts_.data() + t / run_ * elements_);
  }

  /// dq = scale * S do, with the state behind token t.
  void differentiate_query(const Inputs& inputs, std::int64_t b, std::int64_t h, std::int64_t t, const Matrix& state) {
    support::read_row(inputs.dout(), b, h, t, written_.data());
    Eigen::Map<Eigen::Matrix<Real, Eigen::Dynamic, 1>> dq(
        results_->dq.data() + results_->row(b, h, t) * static_cast<std::size_t>(p_.key_dim), p_.key_dim);
    dq.noalias() = state * written_.transpose();
    dq *= static_cast<Real>(p_.scale_value());
  }

  /// The other gradients, from the last token to the first. `of_beta` has one number for each token, or is nullptr.
  void differentiate(const Inputs& inputs, std::int64_t b, std::int64_t g, Real* of_beta) {
    std::fill(gradient_.begin(), gradient_.end(), Real{0});
    for (std::int64_t d = 0; inputs.dpresent() && d < p_.key_dim; ++d)
      support::read_row(*inputs.dpresent(), b, g, d, gradient_.data() + d * p_.value_dim);
    for (std::int64_t first = (p_.query_length - 1) / run_ * run_; first >= 0 && p_.query_length > 0; first -= run_) {
      const std::int64_t last = std::min(first + run_, p_.query_length) - 1;
      repeat_states(inputs, b, g, first, last);
      for (std::int64_t t = last; t >= first; --t) {
        read_losses(inputs, b, g, t);
        step(b, g, t, tokens_[static_cast<std::size_t>(t - first)], decayed(t - first), of_beta);
      }
    }
    if (results_->dstate.empty()) return;
    std::copy(gradient_.begin(), gradient_.end(), results_->dstate.begin() + (b * p_.key_heads + g) * elements_);
  }

 private:
  static std::size_t count(std::int64_t n) { return static_cast<std::size_t>(n); }
  Matrix decayed(std::int64_t n) { return {decayed_.data() + n * elements_, p_.key_dim, p_.value_dim}; }

  /// Reads the tokens of a run, and computes the state that each decays. `linear` needs none.
  void repeat_states(const Inputs& inputs, std::int64_t b, std::int64_t g, std::int64_t first, std::int64_t last) {
    const bool needs_states = p_.has_beta() || p_.has_decay();
    for (std::int64_t t = first; t <= last; ++t) {
      EigenToken<Real>& token = tokens_[count(t - first)];
      token.read(p_, inputs, b, g, t);
      Matrix state = decayed(t - first);
      if (needs_states && t == first) std::copy_n(starts_.data() + t / run_ * elements_, elements_, state.data());
      if (needs_states) token.decay_state(p_, state);
      token.find_difference(p_, state);
      if (!needs_states || t == last) continue;
      write_ = token.beta * token.difference;
      decayed(t - first + 1).noalias() = state + token.key * write_;
    }
  }

  void read_losses(const Inputs& inputs, std::int64_t b, std::int64_t g, std::int64_t t) {
    for (std::int64_t n = 0; n < p_.heads_per_group(); ++n) {
      Real* query = queries_.data() + n * p_.key_dim;
      support::read_row(inputs.q(), b, g * p_.heads_per_group() + n, t, query);
      for (std::int64_t d = 0; d < p_.key_dim; ++d) query[d] *= static_cast<Real>(p_.scale_value());
      support::read_row(inputs.dout(), b, g * p_.heads_per_group() + n, t, losses_.data() + n * p_.value_dim);
    }
  }

  void step(std::int64_t b, std::int64_t g, std::int64_t t, const EigenToken<Real>& token, const Matrix& state,
            Real* of_beta) {
    Matrix gradient(gradient_.data(), p_.key_dim, p_.value_dim);
    const std::int64_t at = (b * p_.key_heads + g) * p_.key_length + t;
    written_.setZero();
    for (std::int64_t d = 0; d < p_.key_dim; ++d) {
      auto row = gradient.row(d);
      for (std::int64_t n = 0; n < p_.heads_per_group(); ++n) row += queries_[count(n * p_.key_dim + d)] * loss(n);
      written_ += token.key[d] * row;
    }
    if (of_beta) of_beta[t] = written_.dot(token.difference);
    write_ = token.beta * token.difference;
    of_value_ = token.beta * written_;
    Eigen::Map<Row>(results_->dv.data() + at * p_.value_dim, p_.value_dim) = of_value_;
    Real* dk = results_->dk.data() + at * p_.key_dim;
    Real of_head = 0;
    for (std::int64_t d = 0; d < p_.key_dim; ++d) {
      auto row = gradient.row(d);
      dk[d] = row.dot(write_);
      if (p_.has_beta()) {
        dk[d] -= state.row(d).dot(of_value_);
        row -= token.key[d] * of_value_;
      }
      if (!p_.has_decay()) continue;
      const Real of_decay = row.dot(state.row(d));
      of_head += of_decay;
      if (!results_->ddecay.empty() && !p_.decay_per_head) results_->ddecay[count(at * p_.key_dim + d)] = of_decay;
      row *= token.decay[d];
    }
    if (!results_->ddecay.empty() && p_.decay_per_head) results_->ddecay[count(at)] = of_head;
  }

  Eigen::Map<const Row> loss(std::int64_t n) const { return {losses_.data() + n * p_.value_dim, p_.value_dim}; }

  const Call p_;
  support::HostResults<Real>* results_;
  std::int64_t run_, elements_;                    ///< tokens whose states are there at a time; of a state
  std::vector<Real> starts_, decayed_, gradient_;  ///< states: in front of each run, of a run; G
  std::vector<Real> queries_, losses_;             ///< of a token, by head: scale * q, do
  std::vector<EigenToken<Real>> tokens_;           ///< of a run
  Row written_, write_, of_value_;                 ///< dw, w and dv of a token
};

}  // namespace attest
