// Linear attention, one token at a time, in float64: a state of Dk x Dv for each key head takes the place of the
// scores. Token t of a key head, with its key k, value v, decay g (logarithms) and beta:
//
//   linear        S = S + k v^T
//   gated         S = exp(g) * S + k v^T                         exp(g) for each key dimension, or one for the head
//   delta         S = S + beta * k (v - S^T k)^T
//   gated_delta   S = exp(g) * S, then as delta
//   output        o = scale * S^T q                              for each query head of the group
//
// With `lengths` sequence b has the first of the L tokens; the rows of o beyond are 0, and the last state is that
// behind its last token. With `qk_heads` a head of q and k serves several states, with their values, decays and betas.
//
// With `l2norm` rows of q and k are divided by sqrt(sum of their squares + eps) first (linear_rows.h).
//
// S starts as zeros or as a given state, and `present` asks for the last one. Compare Katharopoulos et al. 2020,
// Yang et al. 2024 (gated and delta rules) and ONNX's LinearAttention.
//
// The error bound is a running one. An error of the state is carried on by a linear map, I - beta k k^T and the decay,
// so its 2-norm by column grows at most by that map's norm, which is 1 while beta |k|^2 lies in [0, 2] and no decay is
// above 1; elementwise magnitudes alone would grow without end under the delta rules. Both are carried, and the
// smaller one counts. The roundings of one token are bounded for any order of summation within a product, and for
// the recurrence as written. Where an arithmetic states chunks (`linear` and `gated` alone), the bound is the larger of
// this one and that of linear_chunk.h; chunks under the delta rule have no bound yet, and prove nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "reference/arithmetic/arithmetic.h"
#include "reference/call/call.h"
#include "reference/call/tensors.h"
#include "reference/linear/linear_chunk.h"

namespace attest {

/// The state of one key head and, for each arithmetic, the error it may have gathered.
class LinearState {
 public:
  /// One token's inputs and what the exact step made of them.
  struct Token {
    std::vector<double> key, decay_log, decay;  ///< Dk; the key is normalised where the call asks for it
    std::vector<double> value, difference;      ///< Dv; difference = v - S^T k under the delta rules, else v
    double beta = 1;
    double root = 1;  ///< what the key was divided by
  };
  /// How far what was computed may be from the exact, in the accumulator.
  struct Error {
    std::vector<double> element;       ///< of the state, Dk x Dv
    std::vector<double> column;        ///< Dv, of the 2-norm
    std::vector<double> decayed;       ///< of the state that the last token decayed and has not yet written to
    std::vector<double> difference;    ///< Dv, of the last token's
    bool unbounded = false;            ///< the accumulator may have overflowed, or nothing is known
    std::optional<LinearChunk> chunk;  ///< since the last multiple of the stated chunk
  };

  /// Keeps references to the call and the inputs; they outlive it. Token 0 is still to come.
  LinearState(const Call& call, const Inputs& inputs, std::int64_t b, std::int64_t key_head,
              const std::vector<Arithmetic>& arithmetics);

  /// Takes the next token.
  void step();
  std::int64_t tokens() const { return tokens_; }

  const std::vector<double>& values() const { return state_; }     ///< Dk x Dv
  const std::vector<double>& decayed() const { return decayed_; }  ///< before the last token wrote to it
  const Token& token() const { return token_; }                    ///< the last one
  const Error& error(std::size_t a) const { return errors_[a]; }
  /// |computed - exact| of each element of the state, in the accumulator of arithmetic `a`.
  std::vector<double> bounds(std::size_t a) const;

  /// scale * S^T q of query row `i` of head h, and its bound before it is stored.
  void read(std::int64_t h, std::int64_t i, std::vector<double>& output) const;
  void bound_read(std::size_t a, std::int64_t h, std::int64_t i, std::vector<double>& bound) const;
  /// The same of its gradient: scale * S do.
  void read_gradient(std::int64_t h, std::int64_t i, std::vector<double>& dq) const;
  void bound_gradient(std::size_t a, std::int64_t h, std::int64_t i, std::vector<double>& bound) const;

 private:
  void read_token();
  /// Takes a finished chunk into the error and begins the next.
  void turn_chunk(const Arithmetic& a, const std::vector<double>& before, Error& error) const;
  void carry_error(const Arithmetic& a, const std::vector<double>& before, Error& error) const;

  const Call& call_;
  const Inputs& inputs_;
  std::int64_t b_, key_head_, tokens_ = 0;
  std::vector<Arithmetic> arithmetics_;
  std::vector<double> state_, decayed_;
  std::vector<Error> errors_;
  Token token_;
};

}  // namespace attest
