// What NaN and infinities in the data make of a row, whatever the arithmetic: there the class of a result is decided,
// and no bound is needed. What an arithmetic alone makes infinite is not meant: that may overflow, and proves nothing.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "reference/softmax/attention.h"

namespace attest {

/// The row's scores.
struct NonFiniteScores {
  bool row_is_nan = false;         ///< a visible score is NaN or +inf: lse and outputs are no numbers
  bool hide_all = false;           ///< every visible score is -inf: whether that is an empty row is not agreed on
  double largest_product = 0;      ///< of the visible keys whose products are finite, as Row::largest_product
  bool may_lose_infinity = false;  ///< a visible score of -inf may be NaN instead, and the row with it
  /// For each key 1 where its raw score is NaN or infinite because q or k is; empty where all are finite. 0 where an
  /// infinity may be NaN instead, because it meets a number that may underflow to 0.
  std::vector<char> decided;

  bool decides(std::size_t j) const { return !decided.empty() && decided[j] != 0; }
  /// Whether the weight of a visible key is NaN. In the same row those of other keys may also be 0: kernels differ in
  /// whether their maximum sees NaN.
  bool weight_is_nan(const Row& row, std::size_t j) const {
    return row_is_nan && (std::isnan(row.biased[j]) || row.biased[j] == kInfinity);
  }
};
/// `half_range`: sums of finite terms up to it overflow in no order. `eta`: what is smaller may underflow to 0.
NonFiniteScores non_finite_scores(const Head& head, const Row& row, std::int64_t i, double half_range, double eta);

/// What an arithmetic may do to the weights of a row.
struct WeightRange {
  double least_score;                 ///< a finite score below it may become -inf, and its key be gone with its value
  double least_weight;                ///< a weight above it does not underflow, so that an infinity stays one
  const std::vector<double>& errors;  ///< how far each weight may be off
  std::int64_t key_block = 0;         ///< keys per step of an online softmax; 0: one pass
  bool in_parts = false;              ///< keys are cut into parts, nobody knows where
};

/// Whether the output in this column is NaN or infinite because a visible value is.
bool decides_output(const Head& head, const Row& row, std::size_t column, double half_range,
                    const WeightRange& weights);

}  // namespace attest
