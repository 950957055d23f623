// The bound of a row's output, column by column (reference/ERROR_BOUNDS.md, "Output").
#pragma once

#include "reference/softmax/attention.h"
#include "reference/softmax/bounds/bound_constants.h"
#include "reference/softmax/bounds/row_bound.h"
#include "reference/softmax/bounds/row_sums.h"
#include "reference/softmax/bounds/sum_bound.h"
#include "reference/softmax/bounds/weight_errors.h"

namespace attest {

/// Sets `bound.output`, and `bound.terms` to those of column `terms_column` where that is >= 0. `weights_overflow`: one
/// may become an infinity where it is stored.
void bound_output(const Head& head, const Row& row, const RowSums& of_row, const WeightErrors& weights,
                  const ComputedSum& sum, bool weights_overflow, const BoundConstants& c, RowBound& bound,
                  std::int64_t terms_column);

}  // namespace attest
