// Where the bound of one element of a gradient comes from, for `attest explain`.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/arithmetic/producer.h"
#include "reference/softmax/bounds/gradient_bound.h"

namespace attest {

/// A pair of query and key whose product x * y is part of the element.
struct GradientPair {
  std::int64_t b, h, i, j;
  double weight, product, score;  ///< p, dP and dS
  double x, error, y;             ///< error: of x
};

struct GradientTerms {
  ScoreGradientTerms scores;  ///< of dT, each term summed with |scale * y|; of dv the weights' errors alone
  GradientSumTerms sums;
  std::vector<GradientPair> pairs;  ///< those with most of the bound first
};

/// Of the element of dq, dk, dv or dmask at `index`.
GradientTerms terms_of_gradient(const Call& call, const Inputs& inputs, const Producer& producer, TensorId result,
                                const Index4& index);

}  // namespace attest
