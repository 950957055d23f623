// How far an element of dq, dk or dv typically strays from the reference: a standard deviation, were all roundings of a
// backward pass independent. The second tier beside gradient_bound.h.
//
// It claims something for `pass=backward`, where what the forward pass gave is known, and only where the model can
// hold: see error_deviation.h. What is known of a saved o or lse that is not the exact one counts as a shift, not as
// chance. Sums over keys that a row makes for itself (D of P*dP, the sum of kept weights) need all keys of the row, so
// that for those arithmetics dq alone has deviations. dmask and dsinks have none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "reference/arithmetic/producer.h"
#include "reference/arithmetic/rounding.h"
#include "reference/softmax/attention.h"
#include "reference/softmax/bounds/score_deviation.h"
#include "reference/softmax/gradient.h"

namespace attest {

/// What a pair of query and key multiplies: dT with q and k, or r*p with do. Variances are over u^2/3.
struct PairFactor {
  double value = 0;      ///< as it is computed from what was saved
  double own = 0;        ///< variance from roundings that no other pair has
  double by_delta = 0;   ///< how much of an error of D it takes
  double shift = 0;      ///< value less the exact one
  double underflow = 0;  ///< what it may lose to underflow at most
};

/// The factors of one row for one arithmetic, one for each key that was asked for.
struct RowFactors {
  bool claimed = false;
  double delta = 0;  ///< variance of D, which all keys of the row share
  double frame = 0;  ///< variance of a relative error that all weights of the row share
  std::vector<PairFactor> raw, weights;

  /// Where each pair of a sum is of another row: its part of what the row shares is its own.
  PairFactor alone(const PairFactor& pair) const;
};

/// One query row as its data round.
class RowGradientDeviation {
 public:
  /// `row` is row i of `head`, `gradient` its gradient for `loss`; all outlive this. `keys`: visible ones, in order.
  RowGradientDeviation(const Head& head, const Row& row, std::int64_t i, const RowLoss& loss,
                       const RowGradient& gradient, std::vector<std::size_t> keys);

  RowFactors of(const Arithmetic& arithmetic) const;
  const std::vector<std::size_t>& keys() const { return keys_; }

 private:
  struct Pair {
    ScoreSpread score;
    double product = 0;    ///< variance of dP over u^2/3
    double underflow = 0;  ///< of dP, in units of the smallest number
  };
  bool claims(const Arithmetic& arithmetic) const;
  /// theta_j^2 over u^2/3 of the weights of these keys, and what all of them share.
  std::vector<double> weight_variances(const Arithmetic& arithmetic, RowFactors& factors) const;
  PairFactor raw_factor(std::size_t m, double of_weight, const Arithmetic& arithmetic) const;

  const Head& head_;
  const Row& row_;
  const RowLoss& loss_;
  const RowGradient& g_;
  std::vector<std::size_t> keys_;
  std::vector<Pair> pairs_;
  bool same_products_ = false;  ///< q*k or do*v of the first key: their sums round the same way again and again
  double saved_lse_ = 0;        ///< less the exact one
  double saved_delta_ = 0;      ///< D of the saved o, less the exact one
  double delta_ = 0;            ///< variance of D of do*o over u^2/3
  double delta_underflow_ = 0;  ///< in units of the smallest number
};

/// Elements of one gradient that share all but the column: sums over pairs of x * y_c.
class GradientDeviation {
 public:
  /// The next pair: `y` has a number for each column, `other` the Dqk numbers of the row or key that changes from pair
  /// to pair, `score` is the pair's raw score, `weight` its p and `product` its dP.
  void add(const PairFactor& x, std::span<const double> y, std::span<const double> other, double score, double weight,
           double product);
  /// The sum so far is stored before more is added.
  void end_part();
  /// A standard deviation for each column, or infinity where nothing is claimed. `fixed`: the row or key that all pairs
  /// share. `scale`: of the sum. `shared`: of what the pairs of a row share.
  std::vector<double> deviations(const Call& call, std::span<const double> fixed, double scale, const Arithmetic& a,
                                 const Storing& storing, const RowFactors& shared) const;

 private:
  struct Column {
    std::vector<double> terms;
    double own = 0, squares = 0, by_delta = 0, shift = 0, underflow = 0, by_score = 0, operands = 0;
    double sum = 0, part = 0, parts = 0;  ///< part: since the last store; parts: their squares
    std::vector<double> moments;          ///< Dqk: sum of x * y * other
  };
  std::vector<Column> columns_;
  std::vector<double> factors_, weights_, products_;
};

}  // namespace attest
