// What gradients need of each query row besides its tensors: its logsumexp, what is added to its dP, and what it sees.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "backends/support/host_results.h"
#include "backends/support/score_options.h"
#include "backends/support/tiles.h"
#include "backends/support/visibility.h"
#include "reference/call/call.h"

namespace attest::support {

template <class Real>
class GradientRows {
 public:
  /// All outlive it; inputs may change. With pass=both, o and lse are those in `results`.
  GradientRows(const Call& call, const Inputs& inputs, const ScoreOptions<Real>& options, HostResults<Real>& results)
      : call_(call), inputs_(inputs), options_(options), results_(results) {
    const auto rows = static_cast<std::size_t>(call.batch * call.query_heads * call.query_length);
    lse_.resize(rows);
    shift_.resize(rows);
    finite_.resize(rows);
    seen_.resize(static_cast<std::size_t>(call.batch * call.query_length));
    for (std::int64_t b = 0; b < call.batch; ++b) {
      for (std::int64_t i = 0; i < call.stored_queries(b); ++i)
        seen_[static_cast<std::size_t>(b * call.query_length + i)] = options.visibility().row(b, i);
    }
  }

  /// Of the rows of one head. Rows are read by read(tensor, b, h, i, to), which need room for two rows of Dqk and Dv.
  template <class Read>
  void prepare(std::int64_t b, std::int64_t h, const Read& read, Real* q, Real* dout) {
    for (std::int64_t i = 0; i < call_.stored_queries(b); ++i) {
      const std::size_t row = results_.row(b, h, i);
      Real dlse = 0, *out = results_.out_row(row);
      lse_[row] = results_.lse[row];
      if (!call_.runs_forward()) {
        read_row(inputs_.saved_lse(), b, h, i, &lse_[row]);
        read(inputs_.saved_o(), b, h, i, out);
      }
      if (inputs_.dlse()) read_row(*inputs_.dlse(), b, h, i, &dlse);
      read(inputs_.q(), b, h, i, q);
      read(inputs_.dout(), b, h, i, dout);
      Real delta = dot(dout, out, call_.value_dim);
      // A row that sees nothing adds nothing, whatever its do holds.
      if (!std::isfinite(delta) && !sees_any(b, h, i)) delta = 0;
      shift_[row] = dlse - delta;
      finite_[row] =
          !has_non_finite<Real>({q, 0}, 1, call_.key_dim) && !has_non_finite<Real>({dout, 0}, 1, call_.value_dim);
    }
  }

  Real lse(std::size_t row) const { return lse_[row]; }
  /// dlse - D.
  Real shift(std::size_t row) const { return shift_[row]; }
  /// Whether q and do have numbers only.
  bool is_finite(std::size_t row) const { return finite_[row] != 0; }
  const RowKeys& seen(std::int64_t b, std::int64_t i) const {
    return seen_[static_cast<std::size_t>(b * call_.query_length + i)];
  }

  /// The sum over the rows of a head of the sink's weight times (dlse - D).
  Real sink_gradient(std::int64_t h) const {
    const Real sink = options_.sink(h);
    Real sum = 0;
    if (sink == -std::numeric_limits<Real>::infinity()) return sum;
    for (std::int64_t b = 0; b < call_.batch; ++b) {
      for (std::int64_t i = 0; i < call_.stored_queries(b); ++i) {
        const std::size_t row = results_.row(b, h, i);
        sum += std::exp(sink - lse_[row]) * shift_[row];
      }
    }
    return sum;
  }

  static Real dot(const Real* a, const Real* b, std::int64_t n) {
    constexpr std::int64_t kSums = 8;
    Real sums[kSums] = {}, sum = 0;
    std::int64_t d = 0;
    for (; d + kSums <= n; d += kSums) {
      for (std::int64_t s = 0; s < kSums; ++s) sums[s] += a[d + s] * b[d + s];
    }
    for (; d < n; ++d) sum += a[d] * b[d];
    for (const Real part : sums) sum += part;
    return sum;
  }

 private:
  bool sees_any(std::int64_t b, std::int64_t h, std::int64_t i) const {
    const RowKeys& row = seen(b, i);
    for (const KeyRange& range : {row.prefix, row.band}) {
      for (std::int64_t j = range.first; j < range.last; ++j) {
        if (options_.visibility().sees(b, h, i, row, j)) return true;
      }
    }
    return false;
  }

  const Call& call_;
  const Inputs& inputs_;
  const ScoreOptions<Real>& options_;
  HostResults<Real>& results_;
  std::vector<Real> lse_, shift_;
  std::vector<char> finite_;
  std::vector<RowKeys> seen_;  ///< B x Lq
};

}  // namespace attest::support
