#include "reference/softmax/gradient.h"

#include <cmath>

#include "reference/call/tensor_table.h"

namespace attest {
namespace {

std::size_t size_of_shape(const Index4& n) { return static_cast<std::size_t>(n[0] * n[1] * n[2] * n[3]); }

/// to += factor * from
void add(double* to, double factor, const double* from, std::int64_t count) {
  for (std::int64_t d = 0; d < count; ++d) to[d] += factor * from[d];
}

}  // namespace

void differentiate(const Head& head, const Row& row, const RowLoss& loss, RowGradient& g) {
  const Call& p = head.call();
  const std::size_t keys = row.seen.size();
  g.products.assign(keys, 0);
  g.scores.assign(keys, 0);
  g.raw.assign(keys, 0);
  g.mean = 0;
  // Without keys the sink has the whole weight.
  const double of_sink = row.sink == -kInfinity ? 0 : row.visible_count == 0 ? 1 : std::exp(row.sink - row.lse);
  for (std::size_t j = 0; j < keys; ++j) {
    if (!row.seen[j]) continue;
    const double* v = head.value_row(static_cast<std::int64_t>(j));
    for (std::size_t c = 0; c < loss.out.size(); ++c) g.products[j] += loss.out[c] * v[c];
    if (!row.factors.empty()) g.products[j] *= row.factors[j];
    g.mean += row.weights[j] * g.products[j];
  }
  for (std::size_t j = 0; j < keys; ++j) {
    if (!row.seen[j]) continue;
    g.scores[j] = row.weights[j] * (g.products[j] - g.mean + loss.lse);
    const double slope = p.softcap ? std::tanh(row.raw[j] / *p.softcap) : 0;
    g.raw[j] = g.scores[j] * (1 - slope * slope);
  }
  g.sink = row.sink == -kInfinity ? 0 : of_sink * (loss.lse - g.mean);
}

Gradients gradients(const Call& p, const Inputs& inputs, const ConstTensor& out, const ConstTensor* lse) {
  Gradients sums;
  const bool additive = inputs.mask() && is_additive(*inputs.mask());
  const Index4 mask = stored_shape(p, TensorId::mask);
  sums.q.resize(static_cast<std::size_t>(p.batch * p.query_heads * p.query_length * p.key_dim));
  sums.k.resize(static_cast<std::size_t>(p.batch * p.key_heads * p.key_length * p.key_dim));
  sums.v.resize(static_cast<std::size_t>(p.batch * p.key_heads * p.key_length * p.value_dim));
  if (additive) sums.mask.resize(size_of_shape(mask));
  if (inputs.sinks()) sums.sinks.resize(static_cast<std::size_t>(p.query_heads));
  const double scale = p.scale_value();
  Row row;
  RowLoss loss{std::vector<double>(static_cast<std::size_t>(p.value_dim)), 0};
  RowGradient g;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t h = 0; h < p.query_heads; ++h) {
      const Head head(p, inputs, b, h);
      const std::int64_t key_head = b * p.key_heads + h / p.heads_per_group();
      for (std::int64_t i = 0; i < p.stored_queries(b); ++i) {
        head.attend(i, row);
        for (std::int64_t c = 0; c < p.value_dim; ++c)
          loss.out[static_cast<std::size_t>(c)] = load(out.data, out.dtype, out.offset(b, h, i, c));
        if (lse) loss.lse = load(lse->data, lse->dtype, lse->offset(b, h, i, 0));
        differentiate(head, row, loss, g);
        if (inputs.sinks()) sums.sinks[static_cast<std::size_t>(h)] += g.sink;
        const std::vector<double> q = head.query_row(i);
        double* of_query = sums.q.data() + ((b * p.query_heads + h) * p.query_length + i) * p.key_dim;
        for (std::int64_t j = 0; j < p.key_length; ++j) {
          const auto at = static_cast<std::size_t>(j);
          if (!row.seen[at]) continue;
          const std::int64_t key = key_head * p.key_length + j;
          const double weight = row.weights[at] * (row.factors.empty() ? 1 : row.factors[at]);
          add(of_query, scale * g.raw[at], head.key_row(j), p.key_dim);
          add(sums.k.data() + key * p.key_dim, scale * g.raw[at], q.data(), p.key_dim);
          add(sums.v.data() + key * p.value_dim, weight, loss.out.data(), p.value_dim);
          if (!additive) continue;
          const Index4 index = {mask[0] == 1 ? 0 : b, mask[1] == 1 ? 0 : h, mask[2] == 1 ? 0 : i, mask[3] == 1 ? 0 : j};
          sums.mask[static_cast<std::size_t>(((index[0] * mask[1] + index[1]) * mask[2] + index[2]) * mask[3] +
                                             index[3])] += g.scores[at];
        }
      }
    }
  }
  return sums;
}

}  // namespace attest
