// The gradients of linear attention, in float64, from the last token to the first. With the symbols of
// linear_attention.h, S' for the state that token t's decay leaves, w for what the token writes (v, or beta times
// (v - S'^T k) under the delta rules), and the loss's derivatives by o (do) and perhaps by the last state (dpresent):
//
// clang-format off
//   G       starts as dpresent, or as zeros: the derivatives by the state behind the last token
//   G      += scale * sum over the query heads of the group of q do^T          and then, of token t:
//   dq      = scale * S do                                                     for each query head
//   dw      = G^T k
//   dk      = G w                                                              minus beta * S' dw under the delta rules
//   dv      = dw, or beta * dw
//   dbeta   = <dw, v - S'^T k>
//   G       = G - beta * k dw^T                                                under the delta rules
//   ddecay  = sum over the value dimensions of G * S'                          by the logarithm; summed for one of a head
//   G       = exp(g) * G
//   dstate  = G before the first token
// clang-format on
//
// The bounds carry the error of G as linear_attention.h carries that of S, by the same linear maps in reverse order.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/arithmetic/arithmetic.h"
#include "reference/call/call.h"
#include "reference/call/tensors.h"
#include "reference/linear/linear_attention.h"
#include "reference/linear/linear_gradient_error.h"

namespace attest {

/// The gradients of one key head, token by token.
class LinearGradient {
 public:
  /// Keeps references to the call and the inputs; they outlive it. The last token is still to come.
  LinearGradient(const Call& call, const Inputs& inputs, std::int64_t b, std::int64_t key_head,
                 const std::vector<Arithmetic>& arithmetics);

  /// Takes the token before those that were taken.
  void step();
  std::int64_t tokens_left() const { return left_; }

  /// Of the token that was taken last.
  const TokenGradient& values() const { return gradient_; }
  const TokenGradient& bounds(std::size_t a) const { return bounds_[a]; }
  /// G, Dk x Dv: that of the state in front of that token.
  const std::vector<double>& state() const { return step_.state; }
  const std::vector<double>& state_bounds(std::size_t a) const { return errors_[a].bounds(); }

 private:
  /// The state behind token t, with its errors. Kept for a run of tokens, and computed once more for each run.
  const LinearState& state_after(std::int64_t t);
  void add_loss();

  const Call& call_;
  const Inputs& inputs_;
  std::int64_t b_, key_head_, left_, run_;
  std::vector<Arithmetic> arithmetics_;
  std::vector<LinearState> starts_;  ///< in front of each run of tokens
  std::vector<LinearState> states_;  ///< behind each token of the run that is being taken
  std::int64_t first_ = 0;           ///< its first token
  GradientStep step_;
  TokenGradient gradient_;
  std::vector<TokenGradient> bounds_;
  std::vector<LinearGradientError> errors_;
};

}  // namespace attest
