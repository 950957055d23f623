// What options do to the scores and weights of one row, between the steps of the kernels.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "backends/support/dropout.h"
#include "backends/support/visibility.h"

namespace attest::support {

/// A row of scores: query i of head h in batch b against keys [key, key + keys).
struct ScoreRow {
  std::int64_t b, h, i, key, keys;
};

template <class Real>
class ScoreOptions {
 public:
  /// All outlive it; inputs, and which part of the call's they are, may change. Rows and keys are the call's.
  ScoreOptions(const Call& call, const Inputs& inputs, const HeldPart& held = kAllHeld)
      : call_(call), inputs_(inputs), held_(held), visibility_(call, inputs, held) {}

  /// Whether scores and weights stay as the products leave them, but for keys beyond an interval.
  bool none() const { return none_but_mask() && !inputs_.mask(); }
  /// The same, but for a mask, which there may be.
  bool none_but_mask() const {
    return !call_.softcap && !inputs_.blocks() && !inputs_.indices() && !inputs_.slopes() && !drops();
  }
  bool drops() const { return call_.dropout > 0 || inputs_.keep(); }
  const Visibility& visibility() const { return visibility_; }

  /// `tanh_row(scores, n)` works in place.
  template <class TanhRow>
  void cap(const ScoreRow& at, Real* scores, const TanhRow& tanh_row) const {
    if (!call_.softcap) return;
    const Real cap = cap_of(at);
    if (cap == 0) return;  // a scale of 0, and so are the scores
    for (std::int64_t j = 0; j < at.keys; ++j) scores[j] /= cap;
    tanh_row(scores, at.keys);
    for (std::int64_t j = 0; j < at.keys; ++j) scores[j] *= cap;
  }

  /// Biases and hides: -inf where the row does not see.
  void bias(const ScoreRow& at, const RowKeys& seen, Real* scores) const {
    visibility_.apply(at.b, at.h, at.i, seen, at.key, at.keys, scores);
  }

  /// Dropout of weights that have been summed.
  void drop(const ScoreRow& at, Real* weights) const {
    const auto factor = static_cast<Real>(1 / (1 - call_.dropout));
    const std::uint64_t threshold = drop_below(call_.dropout);
    const bool given = inputs_.keep() != nullptr;
    for (std::int64_t j = 0; j < at.keys; ++j) {
      const bool keep = given ? inputs_.kept(at.b, at.h - held_.head, at.i - held_.query, at.key + j)
                              : keeps_weight(call_.dropout_seed, threshold, at.b, at.h, at.i, at.key + j);
      weights[j] *= keep ? factor : Real{0};
    }
  }

  /// Biased scores over every key to weights, in place. Hidden keys get exactly 0, also beside NaN.
  void softmax(Real* row, std::int64_t h) const {
    constexpr Real kHidden = -std::numeric_limits<Real>::infinity();
    const Real logit = sink(h);
    Real most = logit;
    for (std::int64_t j = 0; j < call_.key_length; ++j) most = std::max(most, row[j]);
    Real sum = logit == kHidden ? Real{0} : std::exp(logit - most);
    for (std::int64_t j = 0; j < call_.key_length; ++j) {
      row[j] = row[j] == kHidden ? Real{0} : std::exp(row[j] - most);
      sum += row[j];
    }
    for (std::int64_t j = 0; j < call_.key_length; ++j) {
      if (row[j] != 0) row[j] /= sum;
    }
  }

  /// A logit without a key; -inf: none.
  Real sink(std::int64_t h) const {
    return inputs_.sinks() ? static_cast<Real>(inputs_.sink(h)) : -std::numeric_limits<Real>::infinity();
  }

 private:
  /// Of scaled scores: one of the products is the scale's multiple.
  Real cap_of(const ScoreRow& at) const {
    auto cap = static_cast<Real>(*call_.softcap);
    if (!call_.unscaled_cap) return cap;
    const auto number = [&](TensorId id, std::int64_t b, std::int64_t h, std::int64_t i) {
      const ConstTensor& from = inputs_.at(id);
      return static_cast<Real>(load(from.data, from.dtype, from.offset(b, h, i, 0)));
    };
    cap *= static_cast<Real>(call_.scale_value());
    if (call_.has_head_scales()) cap *= number(TensorId::head_scales, 0, at.h, 0);
    if (call_.has_query_scales()) cap *= number(TensorId::query_scales, at.b, 0, at.i);
    return cap;
  }

  const Call& call_;
  const Inputs& inputs_;
  const HeldPart& held_;
  const Visibility visibility_;
};

}  // namespace attest::support
