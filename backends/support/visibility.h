// Which keys a query row sees, as intervals and mask lookups. Shared by the tiled host backends.
//
// Deliberately not the reference's code: the two are checked against each other.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>

#include "reference/problem.h"
#include "reference/view.h"

namespace attest::support {

/// Half-open interval of keys.
struct KeyRange {
  std::int64_t first = 0, last = 0;
  bool empty() const { return first >= last; }
};

class Visibility {
 public:
  Visibility(const Problem& problem, const std::optional<MaskTensor>& mask)
      : keys_(problem.key_length),
        offset_(problem.diagonal_offset()),
        left_(problem.window_left),
        right_(problem.causal ? 0 : problem.window_right),
        mask_(mask) {
    if (problem.causal) right_ = std::min<std::int64_t>(right_, problem.window_right);
  }

  /// Keys that causal and window leave to query i.
  KeyRange range(std::int64_t i) const {
    const std::int64_t diagonal = i + offset_;
    KeyRange range{0, keys_};
    if (left_ != Problem::kUnbounded) range.first = std::clamp<std::int64_t>(diagonal - left_, 0, keys_);
    if (right_ != Problem::kUnbounded && right_ < keys_ - diagonal) {
      range.last = std::clamp<std::int64_t>(diagonal + right_ + 1, 0, keys_);
    }
    return range;
  }

  /// The smallest interval that holds what queries [first, last) may see. Ranges move to the right with i.
  KeyRange range(std::int64_t first, std::int64_t last) const {
    return {range(first).first, range(last - 1).last};
  }

  bool has_mask() const { return mask_.has_value(); }

  /// Adds the mask's part of row i to scores[0..n) of keys first, first + 1, ...; hidden keys become -inf.
  template <class Real>
  void apply_mask(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t first, std::int64_t n,
                  Real* scores) const {
    constexpr Real kHidden = -std::numeric_limits<Real>::infinity();
    const std::int64_t at = mask_->at(b, h, i, first), step = mask_->strides[3];
    if (!mask_->additive) {
      const auto* bytes = static_cast<const std::uint8_t*>(mask_->data) + at;
      for (std::int64_t j = 0; j < n; ++j) scores[j] = bytes[j * step] ? scores[j] : kHidden;
    } else if (mask_->dtype == DType::f64) {
      add_bias(static_cast<const double*>(mask_->data) + at, step, n, scores);
    } else {
      add_bias(static_cast<const float*>(mask_->data) + at, step, n, scores);
    }
  }

  /// Whether query i sees key j, everything considered. Slow; for rare paths.
  bool sees(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
    const KeyRange keys = range(i);
    if (j < keys.first || j >= keys.last) return false;
    if (!mask_) return true;
    const std::int64_t at = mask_->at(b, h, i, j);
    if (!mask_->additive) return static_cast<const std::uint8_t*>(mask_->data)[at] != 0;
    return load(mask_->data, mask_->dtype, at) != -std::numeric_limits<double>::infinity();
  }

 private:
  template <class Bias, class Real>
  static void add_bias(const Bias* bias, std::int64_t step, std::int64_t n, Real* scores) {
    constexpr Bias kHidden = -std::numeric_limits<Bias>::infinity();
    for (std::int64_t j = 0; j < n; ++j) {
      // A hidden key may hold NaN, which must not survive the sum.
      const Bias value = bias[j * step];
      scores[j] = value == kHidden ? static_cast<Real>(kHidden) : scores[j] + static_cast<Real>(value);
    }
  }

  std::int64_t keys_, offset_, left_, right_;
  std::optional<MaskTensor> mask_;
};

}  // namespace attest::support
