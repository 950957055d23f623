// How far the gradients of linear attention may stray (reference/ERROR_BOUNDS.md, "Gradients of linear attention").
//
// The error of G, the derivatives by the state, is carried from token to token: elementwise, and as the 2-norm of each
// column, of which the smaller counts. What a token's gradients take from G and from the recomputed or kept states has
// the errors of both. A backend that states chunks (Arithmetic::state_chunk) has no bound.
#pragma once

#include <vector>

#include "reference/arithmetic/arithmetic.h"
#include "reference/call/call.h"
#include "reference/linear/linear_attention.h"

namespace attest {

/// What one token of a key head gives: values, or bounds before they are stored.
struct TokenGradient {
  std::vector<double> key, value;  ///< Dk, Dv
  std::vector<double> decay;       ///< Dk, or one for the head
  std::vector<double> beta;        ///< one
};

/// One token's step of the exact G, Dk x Dv each; symbols as in linear_gradient.h.
struct GradientStep {
  std::vector<double> later;     ///< G as the next token left it
  std::vector<double> loss;      ///< sum over the heads of |scale * q do^T|
  std::vector<double> operands;  ///< and of |q| + |do|
  std::vector<double> arrived;   ///< G with the loss of this token
  std::vector<double> written;   ///< dw, Dv
  std::vector<double> decayed;   ///< G behind the delta rule's step: by S'
  std::vector<double> state;     ///< G in front of the token
};

class LinearGradientError {
 public:
  /// Keeps a reference to the call. The G of the last state is exact.
  LinearGradientError(const Call& call, const Arithmetic& arithmetic);

  /// Takes one token, whose state is `state` with errors of its number `a`, and bounds what it gives.
  void carry(const LinearState& state, std::size_t a, const GradientStep& step, TokenGradient& bounds);

  /// |computed - exact| of each element of G in front of the token that was taken last.
  const std::vector<double>& bounds() const { return element_; }

 private:
  /// Of one token: sums of errors and of magnitudes, and of what may underflow.
  struct Sum {
    double error = 0, magnitude = 0, operands = 0;
    void add(double x, double x_error, double y, double y_error);
  };
  void carry_column(const LinearState& state, std::size_t a, const GradientStep& step, std::size_t m,
                    std::vector<Sum>& of_key, std::vector<Sum>& of_decay, Sum& of_beta, double& of_value);
  double finished(const Sum& sum, double terms) const;
  void lose(TokenGradient& bounds) const;

  const Call& call_;
  Arithmetic arithmetic_;
  std::vector<double> element_, column_;  ///< Dk x Dv, Dv
  bool unbounded_;                        ///< the accumulator may have overflowed, or nothing is known
};

}  // namespace attest
