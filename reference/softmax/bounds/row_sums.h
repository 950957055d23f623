// What the bounds of a row have in common, whatever the arithmetic.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/arithmetic/arithmetic.h"
#include "reference/softmax/attention.h"
#include "reference/softmax/bounds/bound_constants.h"
#include "reference/softmax/bounds/row_scores.h"

namespace attest {

/// Under dropout v_j stands for keep_j / (1 - p_drop) * v_j. A sink is one more key with v = 0.
struct RowSums {
  std::vector<double> shares;  ///< exp(s_j - lse), 0 where hidden
  double share_of_sink = 0;    ///< the same of the sink
  /// How many times its share a key's exact weight may be. It is near 1, unless scores are so large that float64 leaves
  /// their differences open.
  double ratio = 1;
  std::vector<ScoreErrors> reference_errors;  ///< the errors of the reference's own scores
  /// How far the exact output may be from a value, over visible keys and the sink, for each column c of the output:
  /// max |v_jc - o_c| times the ratio, or max v_jc - min v_jc where that is less.
  std::vector<double> spread;
  std::vector<double> largest;   ///< max |v_jc|
  std::vector<double> absolute;  ///< sum |v_jc|
};

/// `row` must be row i of `head`.
RowSums row_sums(const Head& head, const Row& row, std::int64_t i);

/// The same with the constants of reference_arithmetic() given.
RowSums row_sums(const Head& head, const Row& row, std::int64_t i, const BoundConstants& of_reference);

}  // namespace attest
