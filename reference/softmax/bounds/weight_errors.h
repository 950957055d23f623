// How far the computed weights of one row may be off (reference/ERROR_BOUNDS.md, "Weights").
#pragma once

#include <vector>

#include "reference/softmax/attention.h"
#include "reference/softmax/bounds/bound_constants.h"
#include "reference/softmax/bounds/row_scores.h"
#include "reference/softmax/bounds/row_sums.h"

namespace attest {

/// Relative errors of the computed weights of one row, as far as they differ between keys.
struct WeightErrors {
  std::vector<double> of_weight;   ///< pt_j, absolute, of the exact weight; 0 where hidden
  std::vector<double> of_storage;  ///< what one loses by its step, where groups have one; else empty
  double of_sink = 0;              ///< the same of the sink's share
  double sum = 0;                  ///< W, the sink included
  double largest_exponent = 0;     ///< max t_j
  double of_maximum = 0;           ///< by how much the computed maximum may be off
  double reference_point = 0;      ///< E*: the same of what is subtracted from the scores
  double largest_score = 0;        ///< max E_j
  double highest = -kInfinity;     ///< max s_j + t_j: of the largest exp(s_j) the logarithm, at most
  double surest = -kInfinity;      ///< max s_j - t_j: and at least
  double shift = 0;                ///< by how much scores may lie elsewhere: RowShift
};

/// `of_shift_of_row`: the magnitude of RowShift.
WeightErrors weight_errors(const Row& row, const RowSums& sums, const std::vector<ScoreErrors>& scores,
                           const BoundConstants& c, double of_shift_of_row);

}  // namespace attest
