// Results of attention over parts of the keys, merged to the result over all of them: what sequence-parallel schemes do
// with the partial results that come round.
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <span>

namespace attest::support {

/// One row. Parts come in any order; each brings its result, already divided by its own sum, and its logsumexp. The
/// largest logsumexp so far is taken out of every exponential, so that none overflows however far apart they are. A
/// sink, or any other key without a value, is in exactly one part's logsumexp. Bound:
/// reference/merge/part_merge.h.
template <class Real>
class RowMerge {
 public:
  /// `sum` has as many entries as a value has; it is worked in, and holds the result after finish().
  explicit RowMerge(std::span<Real> sum) : sum_(sum) {
    for (Real& entry : sum_) entry = 0;
  }

  /// `out` is not looked at where `lse` is -inf: the part sees nothing, and may hold anything. NaN makes the row NaN.
  template <class Stored>
  void add(std::span<const Stored> out, Real lse) {
    if (lse == -kInfinite) return;
    Real weight = 1;
    if (lse > largest_) {
      const Real shrunk = std::exp(largest_ - lse);
      for (Real& entry : sum_) entry *= shrunk;
      weights_ *= shrunk;
      largest_ = lse;
    } else {
      weight = std::exp(lse - largest_);
    }
    for (std::size_t c = 0; c < sum_.size(); ++c) sum_[c] += weight * static_cast<Real>(out[c]);
    weights_ += weight;
  }

  /// A part whose keys have a weight of 0, all of them, which is not to see nothing: 0 times what is not finite among
  /// their values is NaN. `out` is the sum of these products.
  template <class Stored>
  void add_weightless(std::span<const Stored> out) {
    for (std::size_t c = 0; c < sum_.size(); ++c) sum_[c] += static_cast<Real>(out[c]);
  }

  /// Divides, and returns the logsumexp of the row: -inf, with zeros as its result (but for what add_weightless
  /// brought), where no part saw anything.
  Real finish() {
    if (weights_ == 0) return -kInfinite;
    for (Real& entry : sum_) entry /= weights_;
    return largest_ + std::log(weights_);
  }

 private:
  static constexpr Real kInfinite = std::numeric_limits<Real>::infinity();
  std::span<Real> sum_;
  Real largest_ = -kInfinite, weights_ = 0;
};

}  // namespace attest::support
