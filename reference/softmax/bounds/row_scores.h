// How far the scores of a row may be off, step by step (reference/ERROR_BOUNDS.md, "Scores").
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "reference/call/tensors.h"
#include "reference/softmax/attention.h"
#include "reference/softmax/bounds/bound_constants.h"

namespace attest {

/// Absolute errors of one score after each step.
struct ScoreErrors {
  double raw = 0, capped = 0, biased = 0;
};

/// The errors of a row's scores.
class RowScores {
 public:
  RowScores(const Head& head, const Row& row, std::int64_t i, const BoundConstants& c)
      : head_(head),
        row_(row),
        i_(i),
        c_(c),
        additive_(head.inputs().mask() && is_additive(*head.inputs().mask())),
        alibi_(head.inputs().slopes()),
        hides_loss_(c.larger_scale * (c.eta * 0x1p60)) {}

  ScoreErrors of(std::size_t j) const;

 private:
  /// What each store in a narrower type adds; where scores are stored is not declared, how often is.
  double stored(double error, double magnitude) const;

  const Head& head_;
  const Row& row_;
  std::int64_t i_;
  const BoundConstants& c_;
  bool additive_, alibi_;
  double hides_loss_;  ///< an error that is larger by this factor is rounded to itself when a loss is added
};

}  // namespace attest
