// Steps that tokens share on their way into a product, and what rounding in units of them costs a row
// (Rounding::query_rounding and its like; reference/ERROR_BOUNDS.md, "Steps of operands").
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "reference/softmax/attention.h"
#include "reference/softmax/bounds/bound_constants.h"

namespace attest {

/// The steps of a tensor of a head, token by token and feature by feature.
class StepTable {
 public:
  /// `rounding` is that of the operand. `reach`: steps beyond it, or below its reciprocal, lose nobody knows what.
  StepTable(const OperandRounding& own, const FormatRounding& rounding, std::size_t rows, std::size_t columns,
            double reach);

  /// Numbers of a token, hidden ones included: of a step of 0.
  void add(std::size_t row, const double* values);
  double step(std::size_t row, std::size_t column) const;
  /// What a number may lose besides its roundoff. Infinite where a number that shares its step isn't finite.
  double lost(std::size_t row, std::size_t column) const;

 private:
  std::size_t group(std::size_t row, std::size_t column) const {
    return row / rows_of_group_ * groups_of_columns_ + column / columns_of_group_;
  }

  const OperandRounding own_;
  const FormatRounding rounding_;
  const double reach_;
  std::size_t columns_, rows_of_group_, columns_of_group_, groups_of_columns_;
  std::vector<double> largest_;  ///< |x| of each group
};

/// What steps of q and k, and a mean that is taken from k, cost the scores of one row.
class SteppedScores {
 public:
  SteppedScores(const Head& head, const Row& row, std::int64_t i, const BoundConstants& c);

  struct Cost {
    double magnitude = 0;     ///< |scale| * sum_t |q_t * k_jt|, of k as it is rounded
    double of_operands = 0;   ///< what rounding them adds to the score; infinite where they may overflow
    double in_steps = 0;      ///< sum_t |q_t * k_jt| in units of their steps
    double largest_unit = 1;  ///< the largest product of two steps
  };
  Cost of(std::size_t j) const;

 private:
  const Head& head_;
  const Row& row_;
  const BoundConstants& c_;
  double ratio_;
  std::vector<double> query_, mean_, off_mean_;
  StepTable of_query_, of_keys_;
  std::size_t i_;
};

/// The score that a mean of k takes from every score of a row, and by how much lse is off where it is added again.
struct RowShift {
  double magnitude = 0;  ///< |scale| * sum_t |q_t * mean_t|
  double of_lse = 0;
};
RowShift row_shift(const Head& head, const Row& row, std::int64_t i, const BoundConstants& c);

/// The steps of a head's values.
StepTable steps_of_values(const Head& head, const Row& row, const BoundConstants& c);

}  // namespace attest
