// Sums over the visible keys of a row that errors of weights and values enter, a number for each column of the output:
// loops over columns are done in vectors.
#pragma once

#include <vector>

#include "reference/softmax/attention.h"
#include "reference/softmax/bounds/bound_constants.h"
#include "reference/softmax/bounds/weight_errors.h"

namespace attest {

/// What the errors of the weights enter. `ratio`: as in RowSums.
struct ColumnSums {
  std::vector<double> centred;   ///< sum pt_j * |v_jc - o_c|
  std::vector<double> weighted;  ///< sum (p_j + pt_j) * |v_jc|
};
ColumnSums column_sums(const Head& head, const Row& row, double ratio, const WeightErrors& errors);

/// Likewise steps, those of values and those of weights; the lists are empty without.
struct StepSums {
  std::vector<double> of_values;   ///< sum (p_j + pt_j) * h_jc
  std::vector<double> largest;     ///< max h_jc
  std::vector<double> of_weights;  ///< sum z_j * |v_jc|
  double weights = 0;              ///< sum z_j
  double largest_unit = 1;         ///< the largest finite step of a value, or 1
  double in_steps = 0;             ///< the largest |v_jc| in units of its step
};
StepSums step_sums(const Head& head, const Row& row, double ratio, const WeightErrors& errors, const BoundConstants& c);

}  // namespace attest
