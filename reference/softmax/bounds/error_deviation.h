// How far the output of a correct implementation typically strays from the reference: a standard deviation, were all
// its roundings independent. The second tier beside error_bound.h, whose worst case weakens as rows grow longer.
//
// It claims something only where the model can hold: no overflow in sight, values far from underflow, terms that differ
// (the same sum rounds the same way again and again), and errors of the scores small enough for exp to be linear in
// them. Terms so small that a sum may swallow them whole count with all they may lose.
#pragma once

#include <span>
#include <vector>

#include "reference/arithmetic/producer.h"
#include "reference/softmax/attention.h"
#include "reference/softmax/bounds/score_deviation.h"

namespace attest {

/// What the standard deviations of one row's outputs owe to its data; the declared arithmetic comes after.
class RowDeviation {
 public:
  /// `row` must be row i of `head`; both outlive this. `columns`: which of the Dv outputs.
  RowDeviation(const Head& head, const Row& row, std::int64_t i, std::span<const std::int64_t> columns);

  /// One standard deviation for each column, in units of the output; infinity where nothing is claimed.
  std::vector<double> of(const Producer& producer) const;

 private:
  /// p_j * v_jc of the visible keys and how they add up.
  struct Terms {
    std::vector<double> values;  ///< v_jc, under dropout with its factor
    double largest = 0;          ///< |p_j * v_jc|, or |partial sum|
    double partials = 0;         ///< sum of the squared partial sums, in order or in random order: the larger one
    double weight_partials = 0;  ///< the same of the weights
    double lost = 0;             ///< what the sums may swallow: of the products, and of the weights times |o|
    bool repeated = false;       ///< a quarter of the terms or more repeat others
  };
  Terms terms_of(std::size_t n, double u) const;
  /// Of the argument of exp(score - m), and under no maximum of exp(score).
  double shift_variance(double score, const Arithmetic& arithmetic) const;
  std::vector<double> weight_variances(const Arithmetic& arithmetic) const;
  double column_variance(std::size_t n, const Terms& terms, const Arithmetic& arithmetic,
                         const std::vector<double>& weights) const;
  double rescaling_variance(const std::vector<double>& pulls, double of_sink, const Arithmetic& arithmetic) const;
  double operand_variance(std::size_t n, const Arithmetic& arithmetic) const;
  double merge_variance(std::size_t n, const Terms& terms, const Arithmetic& arithmetic) const;
  bool claims(const Arithmetic& arithmetic) const;

  const Head& head_;
  const Row& row_;
  std::vector<std::int64_t> columns_;
  std::vector<ScoreSpread> keys_;  ///< the visible ones in order
  std::vector<double> shared_;     ///< per column: sum_d (scale * q_d * sum_j p_j * (v_j - o) * k_jd)^2
  bool same_products_ = false;     ///< of the first visible key: their sum rounds the same way again and again
  double largest_value_ = 0;       ///< of |v| in any of the columns
  double largest_query_ = 0, largest_key_ = 0;  ///< of |q|, and of |k| over the visible keys
  std::vector<double> moments_;                 ///< per column: sum_d (scale * sum_j p_j * (v_j - o) * k_jd)^2
};

}  // namespace attest
