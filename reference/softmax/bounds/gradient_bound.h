// How far the gradients of a correct implementation may stray from the reference's (reference/ERROR_BOUNDS.md,
// "Gradients"): first what one query row gives to them, then their sums.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/softmax/attention.h"
#include "reference/softmax/bounds/bound_constants.h"
#include "reference/softmax/gradient.h"

namespace attest {

/// How far what a backward pass knows of its forward one may be from the exact: absolute errors.
struct ForwardErrors {
  const std::vector<double>& output;  ///< Dv entries
  double lse = 0;
  const std::vector<double>& weights;  ///< Lk entries: of kept weights
};

/// What makes up the error of dS or dT of one key, for `attest explain`.
struct ScoreGradientTerms {
  double weights = 0;     ///< of the weight, times the size of dP - D + dlse
  double products = 0;    ///< of dP, times the weight
  double delta = 0;       ///< of D, times the weight
  double difference = 0;  ///< rounding of dP - D + dlse and of its product with the weight
  double softcap = 0;     ///< of the cap's derivative
  double storage = 0;     ///< rounding to the type in which dS is stored
  double sum() const { return weights + products + delta + difference + softcap + storage; }
  void add(const ScoreGradientTerms& other, double times) {
    weights += times * other.weights;
    products += times * other.products;
    delta += times * other.delta;
    difference += times * other.difference;
    softcap += times * other.softcap;
    storage += times * other.storage;
  }
};

/// Absolute errors of what one query row gives to the gradients. Lists have Lk entries, 0 where hidden and infinite
/// where nothing can be said; where the data make a number NaN, its class decides, and the error is 0.
struct RowGradientErrors {
  std::vector<double> weights;  ///< of r*p, which multiplies do
  std::vector<double> scores;   ///< of dS
  std::vector<double> raw;      ///< of dT, which multiplies q and k
  double sink = 0;
  std::vector<ScoreGradientTerms> terms;  ///< where asked for
};
/// Of which error the terms are asked for.
enum class TermsOf : std::uint8_t { nothing, scores, raw };

/// `row` is row i of `head`, `gradient` its gradient for `loss`, `ratio` as in RowSums.
void bound_row_gradient(const Head& head, const Row& row, std::int64_t i, const RowLoss& loss,
                        const RowGradient& gradient, const ForwardErrors& forward, double ratio,
                        const BoundConstants& c, RowGradientErrors& errors, TermsOf wanted = TermsOf::nothing);

/// A sum of products x*y, in any order: of one element of a gradient.
struct GradientSum {
  double errors = 0;      ///< sum of |y| times the error of x
  double magnitudes = 0;  ///< sum of |y| * (|x| + its error)
  double operands = 0;    ///< sum of |x| + |y|: what flushing them may cost
  std::int64_t terms = 0;
  double kept_apart = 0;  ///< sum over the parts that are stored before they are added: their magnitudes with errors
  std::int64_t parts = 0;

  void add(double x, double x_error, double y);
};

/// What makes up the bound of a sum.
struct GradientSumTerms {
  double errors = 0;     ///< of what is added
  double rounding = 0;   ///< of the products and their sum, and of the scale
  double parts = 0;      ///< of parts that are stored before they are added
  double underflow = 0;  ///< what numbers too small to be held may lose
  double storage = 0;    ///< rounding to the type of the result
};

/// The bound of `value`, the sum times `scale`, as it is stored. `roundings`: of each product beside that of the sum.
/// 0 for a sum of nothing.
double bound_gradient_sum(const GradientSum& sum, double value, double scale, double roundings, const BoundConstants& c,
                          const Storing& storing, GradientSumTerms* terms = nullptr);

}  // namespace attest
