#include "reference/transformer.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "reference/attention.h"

namespace attest {
namespace {

Matrix zeros(std::int64_t rows, std::int64_t columns) {
  return {rows, columns, std::vector<double>(static_cast<std::size_t>(rows * columns))};
}

double& at(Matrix& m, std::int64_t row, std::int64_t column) {
  return m.values[static_cast<std::size_t>(row * m.columns + column)];
}

ConstTensor view_of(const Matrix& m, std::int64_t heads) {
  const std::int64_t dim = m.columns / heads;
  return {m.values.data(), DType::f64, {1, heads, m.rows, dim}, {m.rows * m.columns, dim, m.columns, 1}};
}

void add_to_rows(Matrix& m, const std::vector<double>& bias) {
  if (bias.empty()) return;
  if (static_cast<std::int64_t>(bias.size()) != m.columns) throw std::invalid_argument("a bias of another width");
  for (std::int64_t i = 0; i < m.rows; ++i) {
    for (std::int64_t c = 0; c < m.columns; ++c) at(m, i, c) += bias[static_cast<std::size_t>(c)];
  }
}

}  // namespace

std::vector<double> reference_core(const Call& call, const Inputs& inputs) {
  std::vector<double> out;
  for (const Row& row : attention(call, inputs).rows) out.insert(out.end(), row.output.begin(), row.output.end());
  return out;
}

Matrix multi_head_attention(const Matrix& x, const Matrix& memory, const MultiHeadWeights& w,
                            const MultiHeadShape& shape, const AttentionCore& core) {
  const Matrix q = project(x, w.q), k = project(memory, w.k), v = project(memory, w.v);
  if (shape.key_heads < 1 || shape.query_heads % shape.key_heads != 0 || q.columns % shape.query_heads != 0 ||
      k.columns % shape.key_heads != 0 || v.columns % shape.key_heads != 0) {
    throw std::invalid_argument("the projections don't hold that many heads");
  }
  Call p;
  p.dtype = DType::f64;
  p.query_heads = shape.query_heads;
  p.key_heads = shape.key_heads;
  p.query_length = x.rows;
  p.key_length = memory.rows;
  p.key_dim = q.columns / shape.query_heads;
  p.value_dim = v.columns / shape.key_heads;
  if (k.columns / shape.key_heads != p.key_dim) throw std::invalid_argument("heads of q and k have different widths");
  p.causal = shape.causal;
  p.layout = Layout::bld;
  Inputs inputs;
  inputs.q = view_of(q, p.query_heads);
  inputs.k = view_of(k, p.key_heads);
  inputs.v = view_of(v, p.key_heads);
  const std::vector<double> heads = core(p, inputs);

  Matrix side_by_side = zeros(x.rows, p.query_heads * p.value_dim);
  std::size_t next = 0;
  for (std::int64_t h = 0; h < p.query_heads; ++h) {
    for (std::int64_t i = 0; i < x.rows; ++i) {
      for (std::int64_t c = 0; c < p.value_dim; ++c) at(side_by_side, i, h * p.value_dim + c) = heads.at(next++);
    }
  }
  return project(side_by_side, w.o);
}

Matrix sinusoidal_positions(std::int64_t length, std::int64_t model) {
  Matrix m = zeros(length, model);
  for (std::int64_t i = 0; i < length; ++i) {
    for (std::int64_t c = 0; c < model; ++c) {
      const double exponent = static_cast<double>(c - c % 2) / static_cast<double>(model);
      const double angle = static_cast<double>(i) / std::pow(10000.0, exponent);
      at(m, i, c) = c % 2 == 0 ? std::sin(angle) : std::cos(angle);
    }
  }
  return m;
}

Matrix layer_norm(const Matrix& x, const LayerNorm& norm) {
  Matrix result = x;
  for (std::int64_t i = 0; i < x.rows; ++i) {
    double mean = 0, variance = 0;
    for (std::int64_t c = 0; c < x.columns; ++c) mean += x.at(i, c) / static_cast<double>(x.columns);
    for (std::int64_t c = 0; c < x.columns; ++c) {
      variance += (x.at(i, c) - mean) * (x.at(i, c) - mean) / static_cast<double>(x.columns);
    }
    for (std::int64_t c = 0; c < x.columns; ++c) {
      const auto n = static_cast<std::size_t>(c);
      at(result, i, c) =
          (x.at(i, c) - mean) / std::sqrt(variance + norm.epsilon) * (norm.gain.empty() ? 1 : norm.gain.at(n)) +
          (norm.bias.empty() ? 0 : norm.bias.at(n));
    }
  }
  return result;
}

double activate(Activation activation, double x) {
  if (activation == Activation::relu) return std::max(x, 0.0);
  return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
}

Matrix feed_forward(const Matrix& x, const FeedForward& ffn) {
  Matrix hidden = project(x, ffn.in);
  add_to_rows(hidden, ffn.in_bias);
  for (double& value : hidden.values) value = activate(ffn.activation, value);
  Matrix result = project(hidden, ffn.out);
  add_to_rows(result, ffn.out_bias);
  return result;
}

Matrix add(const Matrix& a, const Matrix& b) {
  if (a.rows != b.rows || a.columns != b.columns) throw std::invalid_argument("a residual of another shape");
  Matrix sum = a;
  for (std::size_t n = 0; n < sum.values.size(); ++n) sum.values[n] += b.values[n];
  return sum;
}

BlockStages run_block(const Matrix& x, const Matrix* memory, const Block& block, const AttentionCore& core) {
  const auto around = [&](const Matrix& input, const LayerNorm& norm, Matrix& inner, const auto& layer) {
    if (block.pre_norm) {
      inner = layer(layer_norm(input, norm));
      return add(input, inner);
    }
    inner = layer(input);
    return layer_norm(add(input, inner), norm);
  };
  BlockStages s;
  s.after_attention = around(x, block.self_norm, s.attended, [&](const Matrix& input) {
    return multi_head_attention(input, input, block.self, block.self_shape, core);
  });
  Matrix with_memory = s.after_attention, inner;
  if (block.cross) {
    if (!memory) throw std::invalid_argument("cross-attention needs a memory");
    MultiHeadShape shape = block.self_shape;
    shape.causal = false;
    with_memory = around(s.after_attention, block.cross_norm, inner, [&](const Matrix& input) {
      return multi_head_attention(input, *memory, *block.cross, shape, core);
    });
  }
  s.output =
      around(with_memory, block.ffn_norm, s.fed, [&](const Matrix& input) { return feed_forward(input, block.ffn); });
  return s;
}

std::vector<double> cross_entropy(const Matrix& logits, const std::vector<std::int64_t>& targets) {
  std::vector<double> losses;
  for (std::int64_t i = 0; i < logits.rows; ++i) {
    double max = -kInfinity, sum = 0;
    for (std::int64_t c = 0; c < logits.columns; ++c) max = std::max(max, logits.at(i, c));
    for (std::int64_t c = 0; c < logits.columns; ++c) sum += std::exp(logits.at(i, c) - max);
    losses.push_back(max + std::log(sum) - logits.at(i, targets.at(static_cast<std::size_t>(i))));
  }
  return losses;
}

}  // namespace attest
