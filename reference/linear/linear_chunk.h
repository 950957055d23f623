// The bound of linear attention in chunks: `linear` and `gated`, where the tokens of a chunk enter the state together.
// With S the state before the chunk, G_i the logarithms of the decay summed from the chunk's first token to token i:
//
//   q~_i = exp(G_i) * q_i       k~_j = exp(-G_j) * k_j          (without decay: q and k themselves)
//   o_i  = scale * (S^T q~_i + sum over j <= i of (q~_i . k~_j) v_j)
//   S    = exp(G) * (S + sum over the chunk of k~_j v_j^T)
//
// Every term of these sums is a product of inputs, so its error is relative to itself, and what is counted is how many
// roundings lie on its way. With C tokens in a chunk, each factor (1 + u) or (1 + e_exp):
//
//   of an output  the product with q~ and with k~, Dk of a sum over features, C + 1 of a sum over tokens that goes on
//                 from the product with the state or is added to it, 2 of the scale; two exp
//   of the state  the product with k~ and with exp(G), C + 1 of the sum over tokens; two exp
//   G             C of its sum, relative to the sum of magnitudes; it enters twice, by exp
//
// Dividing by exp(G) overflows where a decay is strong: a chunk in which the magnitudes of one feature's logarithms sum
// to more than kChunkNats goes token by token, and any chunk may. The bound is the larger of both ways'.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/arithmetic/arithmetic.h"

namespace attest {

/// What the tokens since the chunk's first one have added up to, in float64, for a state of `keys` x `columns`.
class LinearChunk {
 public:
  LinearChunk(std::size_t keys, std::size_t columns);

  /// Before the first token: the exact state, and how far the computed one may be from it.
  void begin(const std::vector<double>& state, const std::vector<double>& error);
  /// `decay_log` is empty without decay, `off` where the key is exact: else that is how far it may be off.
  void add(const std::vector<double>& key, const std::vector<double>& value, const std::vector<double>& decay_log,
           const std::vector<double>& off = {});

  std::int64_t tokens() const { return tokens_; }
  /// False where decays are so strong that the tokens go one by one.
  bool together() const;

  /// |computed - exact| of the state behind the last token; infinite where the accumulator may overflow.
  std::vector<double> state_bound(const Arithmetic& a) const;
  /// Of scale * S^T q for a query at the last token. `query` holds magnitudes, `off` as of keys.
  std::vector<double> read_bound(const Arithmetic& a, const std::vector<double>& query, double scale,
                                 const std::vector<double>& off = {}) const;

 private:
  /// Relative error of a term with feature d, with this many roundings and both exp on its way.
  double term_error(const Arithmetic& a, std::size_t d, double roundings) const;

  std::size_t keys_, columns_;
  std::int64_t tokens_ = 0;
  bool gated_ = false;
  std::vector<double> held_;                 ///< of the state before the chunk: at most this large
  std::vector<double> error_;                ///< its error, and what keys that were off have added to it
  std::vector<double> added_;                ///< sum of |k~_j v_j|
  std::vector<double> log_, log_magnitude_;  ///< G and the sum of magnitudes, of each feature
  std::vector<double> values_;               ///< sum of |v_j|, of each column
  double largest_key_ = 0;                   ///< of all k~
};

}  // namespace attest
