// How far a correct implementation may stray from the reference, per output element.
//
// A worst-case bound, derived from the row's data and from the declared arithmetic; nothing in it is tuned.
// Any order of summation is covered (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1); the
// softmax part uses that a shift common to a row cancels and that outputs are convex combinations
// (compare Blanchard, Higham and Higham, IMA J. Numer. Anal. 41, 2021).
#pragma once

#include <vector>

#include "reference/arithmetic/producer.h"
#include "reference/softmax/attention.h"
#include "reference/softmax/bounds/bound_constants.h"
#include "reference/softmax/bounds/row_sums.h"

namespace attest {

/// Absolute bounds for one query row. Infinity where the arithmetic may overflow: such an element proves nothing.
struct RowBound {
  std::vector<double> output;  ///< Dv entries
  double lse = 0, max = 0, sum = 0;
  /// Lk entries each, only where the call asks for that output.
  std::vector<double> raw, capped, biased, weights;

  // The terms, for `attest explain`, at the output column asked for.
  struct Terms {
    double score = 0;   ///< largest E_j: absolute error of a biased score
    double weight = 0;  ///< W: sum of the weights' errors
    double centred = 0, products = 0, division = 0, underflow = 0, storage = 0;
  } terms;
};

/// `row` must be row i of `head`. `terms_column` >= 0 asks for the terms of that output element.
void bound_row(const Head& head, const Row& row, std::int64_t i, const Producer& producer, RowBound& bound,
               std::int64_t terms_column = -1);

/// The same with what doesn't depend on the row, or not on the arithmetic, given.
void bound_row(const Head& head, const Row& row, const RowSums& sums, std::int64_t i, const BoundConstants& constants,
               RowBound& bound, std::int64_t terms_column = -1);

/// How far exp(s_j - lse) may be from the weight of key j, where score and lse are off by these. `ratio`: as in
/// RowSums.
double weight_from_lse(const Row& row, double ratio, std::size_t j, double score_error, double lse_error,
                       const BoundConstants& c);

}  // namespace attest
