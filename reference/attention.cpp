#include "reference/attention.h"

#include <algorithm>
#include <cmath>

namespace attest {
namespace {

double additive_at(const Inputs& inputs, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
  if (!inputs.mask || !inputs.mask->additive) return 0;
  return load(inputs.mask->data, inputs.mask->dtype, inputs.mask->at(b, h, i, j));
}

/// Rows of one head of a B,H,L,D tensor, dense and in float64.
std::vector<double> read_head(const ConstTensor& tensor, std::int64_t b, std::int64_t h) {
  std::vector<double> rows(static_cast<std::size_t>(tensor.shape[2] * tensor.shape[3]));
  std::size_t at = 0;
  for (std::int64_t l = 0; l < tensor.shape[2]; ++l) {
    for (std::int64_t d = 0; d < tensor.shape[3]; ++d) {
      const Index4& s = tensor.strides;
      rows[at++] = load(tensor.data, tensor.dtype, b * s[0] + h * s[1] + l * s[2] + d * s[3]);
    }
  }
  return rows;
}

}  // namespace

bool visible(const Problem& p, const Inputs& inputs, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
  const std::int64_t diagonal = i + p.diagonal_offset();
  if (p.causal && j > diagonal) return false;
  if (p.window_left != Problem::kUnbounded && diagonal - j > p.window_left) return false;
  if (p.window_right != Problem::kUnbounded && j - diagonal > p.window_right) return false;
  if (inputs.mask && !inputs.mask->additive) {
    return static_cast<const std::uint8_t*>(inputs.mask->data)[inputs.mask->at(b, h, i, j)] != 0;
  }
  return additive_at(inputs, b, h, i, j) != -kInfinity;
}

Head::Head(const Problem& problem, const Inputs& inputs, std::int64_t b, std::int64_t h)
    : problem_(problem),
      inputs_(inputs),
      b_(b),
      h_(h),
      keys_(read_head(inputs.k, b, h / problem.heads_per_group())),
      values_(read_head(inputs.v, b, h / problem.heads_per_group())) {
  for (std::int64_t j = 0; j < problem.key_length; ++j) {
    double sum = 0;
    for (std::int64_t t = 0; t < problem.key_dim; ++t) sum += std::fabs(key_row(j)[t]);
    key_abs_sums_.push_back(sum);
  }
}

std::vector<double> Head::query_row(std::int64_t i) const {
  std::vector<double> q(static_cast<std::size_t>(problem_.key_dim));
  const Index4& s = inputs_.q.strides;
  for (std::int64_t d = 0; d < problem_.key_dim; ++d) {
    q[static_cast<std::size_t>(d)] =
        load(inputs_.q.data, inputs_.q.dtype, b_ * s[0] + h_ * s[1] + i * s[2] + d * s[3]);
  }
  return q;
}

void Head::attend(std::int64_t i, Row& row) const {
  const auto keys = static_cast<std::size_t>(problem_.key_length);
  const auto key_dim = static_cast<std::size_t>(problem_.key_dim);
  const auto value_dim = static_cast<std::size_t>(problem_.value_dim);
  const double scale = problem_.scale_value();
  const std::vector<double> q = query_row(i);

  row.seen.assign(keys, 0);
  row.raw.resize(keys);
  row.biased.resize(keys);
  row.abs_products.resize(keys);
  row.weights.assign(keys, 0);
  row.output.assign(value_dim, 0);
  row.max = -kInfinity;
  row.sum = 0;
  row.lse = -kInfinity;
  row.largest_product = 0;
  row.query_abs_sum = 0;
  for (double value : q) row.query_abs_sum += std::fabs(value);
  row.visible_count = 0;

  for (std::size_t j = 0; j < keys; ++j) {
    const double* k = key_row(static_cast<std::int64_t>(j));
    double dot = 0, magnitude = 0;
    for (std::size_t t = 0; t < key_dim; ++t) {
      dot += q[t] * k[t];
      magnitude += std::fabs(q[t] * k[t]);
    }
    row.raw[j] = scale * dot;
    row.abs_products[j] = std::fabs(scale) * magnitude;
    row.biased[j] = row.raw[j] + additive_at(inputs_, b_, h_, i, static_cast<std::int64_t>(j));
    if (!visible(problem_, inputs_, b_, h_, i, static_cast<std::int64_t>(j))) continue;
    row.seen[j] = 1;
    ++row.visible_count;
    row.largest_product = std::max({row.largest_product, magnitude, row.abs_products[j]});
    // NaN must win: a maximum that drops it would hide visible poison.
    if (!(row.biased[j] <= row.max)) row.max = row.biased[j];
    if (std::isnan(row.biased[j])) row.max = kNaN;
  }
  if (row.visible_count == 0) return;

  for (std::size_t j = 0; j < keys; ++j) {
    if (!row.seen[j]) continue;
    row.weights[j] = std::exp(row.biased[j] - row.max);
    row.sum += row.weights[j];
  }
  row.lse = row.max + std::log(row.sum);

  for (std::size_t j = 0; j < keys; ++j) {
    if (!row.seen[j]) continue;
    row.weights[j] /= row.sum;
    const double* v = value_row(static_cast<std::int64_t>(j));
    for (std::size_t c = 0; c < value_dim; ++c) row.output[c] += row.weights[j] * v[c];
  }
}

Attention attention(const Problem& problem, const Inputs& inputs) {
  Attention result;
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    for (std::int64_t h = 0; h < problem.query_heads; ++h) {
      const Head head(problem, inputs, b, h);
      for (std::int64_t i = 0; i < problem.query_length; ++i) head.attend(i, result.rows.emplace_back());
    }
  }
  return result;
}

}  // namespace attest
