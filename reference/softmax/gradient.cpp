#include "reference/softmax/gradient.h"

#include <cmath>

namespace attest {
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

RowLoss loss_of(const Call& p, const Inputs& inputs, std::int64_t b, std::int64_t h, std::int64_t i) {
  RowLoss loss{std::vector<double>(static_cast<std::size_t>(p.value_dim)), 0};
  const auto number = [&](const ConstTensor& t, std::int64_t c) { return load(t.data, t.dtype, t.offset(b, h, i, c)); };
  for (std::int64_t c = 0; c < p.value_dim; ++c) loss.out[static_cast<std::size_t>(c)] = number(inputs.dout(), c);
  if (inputs.dlse()) loss.lse = number(*inputs.dlse(), 0);
  return loss;
}

}  // namespace attest
