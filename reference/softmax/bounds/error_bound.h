// How far a correct implementation may stray from the reference, per output element.
//
// A worst-case bound, derived from the row's data and from the declared arithmetic; nothing in it is tuned.
// Any order of summation is covered (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1); the
// softmax part uses that a shift common to a row cancels and that outputs are convex combinations
// (compare Blanchard, Higham and Higham, IMA J. Numer. Anal. 41, 2021).
#pragma once

#include "reference/arithmetic/producer.h"
#include "reference/softmax/attention.h"
#include "reference/softmax/bounds/bound_constants.h"
#include "reference/softmax/bounds/row_bound.h"
#include "reference/softmax/bounds/row_sums.h"

namespace attest {

/// `row` must be row i of `head`. `terms_column` >= 0 asks for the terms of that output element.
void bound_row(const Head& head, const Row& row, std::int64_t i, const Producer& producer, RowBound& bound,
               std::int64_t terms_column = -1);

/// The same with what doesn't depend on the row, or not on the arithmetic, given.
void bound_row(const Head& head, const Row& row, const RowSums& sums, std::int64_t i, const BoundConstants& constants,
               RowBound& bound, std::int64_t terms_column = -1);

}  // namespace attest
