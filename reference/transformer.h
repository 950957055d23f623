// What stands around attention in a transformer, in float64 and written to be read: multi-head attention, positional
// encodings, pre- and post-norm blocks, a language-model head and its loss. The attention core is a function, so that
// any implementation can be put in its place.
//
// Vaswani et al., "Attention is all you need", 2017; pre-norm: Xiong et al., 2020; GELU: Hendrycks and Gimpel, 2016.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "reference/call.h"
#include "reference/projection.h"
#include "reference/tensors.h"

namespace attest {

/// Runs one attention call with B = 1 and returns o in the order h, i, c.
using AttentionCore = std::function<std::vector<double>(const Call&, const Inputs&)>;

/// The reference itself as a core.
std::vector<double> reference_core(const Call& call, const Inputs& inputs);

struct MultiHeadShape {
  std::int64_t query_heads = 1, key_heads = 1;
  bool causal = false;
};

/// q: model x Hq*Dqk, k: model x Hkv*Dqk, v: model x Hkv*Dv, o: Hq*Dv x model.
struct MultiHeadWeights {
  Matrix q, k, v, o;
};

/// Projections, heads side by side (layout bld), attention, concatenation, output projection. Self-attention when
/// `memory` is `x`, cross-attention when it is another sequence. Throws std::invalid_argument when shapes don't fit.
Matrix multi_head_attention(const Matrix& x, const Matrix& memory, const MultiHeadWeights& weights,
                            const MultiHeadShape& shape, const AttentionCore& core);

/// sin and cos of position / 10000^(2t/model), interleaved.
Matrix sinusoidal_positions(std::int64_t length, std::int64_t model);

/// Each row less its mean, over its standard deviation (biased, plus epsilon in the variance), times gain, plus bias.
struct LayerNorm {
  std::vector<double> gain, bias;
  double epsilon = 1e-5;
};
Matrix layer_norm(const Matrix& x, const LayerNorm& norm);

enum class Activation : std::uint8_t { relu, gelu };
double activate(Activation activation, double x);

/// activation(x * in + in_bias) * out + out_bias.
struct FeedForward {
  Matrix in, out;
  std::vector<double> in_bias, out_bias;
  Activation activation = Activation::gelu;
};
Matrix feed_forward(const Matrix& x, const FeedForward& ffn);

struct Block {
  MultiHeadWeights self;
  MultiHeadShape self_shape;
  std::optional<MultiHeadWeights> cross;  ///< attends to `memory`, never causal
  FeedForward ffn;
  LayerNorm self_norm, cross_norm, ffn_norm;
  bool pre_norm = true;  ///< x + f(norm(x)); else norm(x + f(x))
};

/// Every stage, for a trace.
struct BlockStages {
  Matrix attended, after_attention, fed, output;
};
BlockStages run_block(const Matrix& x, const Matrix* memory, const Block& block, const AttentionCore& core);

/// Sum of two matrices of one shape.
Matrix add(const Matrix& a, const Matrix& b);

/// Natural-log loss of each row's target: log(sum exp(logits)) - logits[target].
std::vector<double> cross_entropy(const Matrix& logits, const std::vector<std::int64_t>& targets);

}  // namespace attest
