#include "reference/softmax/bounds/gradient_samples.h"

#include <algorithm>

#include "reference/call/tensor_table.h"

namespace attest {
namespace {

constexpr std::int64_t kSampledKeys = 6;

}  // namespace

GradientSamples::GradientSamples(const Call& p, const std::vector<TensorId>& results,
                                 const std::vector<Producer>& producers, const std::vector<char>& key_heads)
    : call_(p), producers_(producers) {
  if (p.runs_forward() || producers.empty()) return;
  std::vector<std::int64_t> heads;
  for (std::int64_t at = 0; at < p.batch * p.key_heads; ++at) {
    if (key_heads.empty() || key_heads[static_cast<std::size_t>(at)]) heads.push_back(at);
  }
  const std::int64_t keys = static_cast<std::int64_t>(heads.size()) * p.key_length;
  const std::int64_t count = std::min(keys, kSampledKeys);
  for (const TensorId result : results) {
    if (result != TensorId::dk && result != TensorId::dv) continue;
    const std::int64_t columns = seen_shape(p, result)[3];
    for (std::int64_t n = 0; n < count; ++n) {
      const std::int64_t at = count == 1 ? 0 : n * (keys - 1) / (count - 1);
      const std::int64_t head = heads[static_cast<std::size_t>(at / p.key_length)];
      sampled_.push_back({result,
                          head / p.key_heads,
                          head % p.key_heads,
                          at % p.key_length,
                          sampled_columns(static_cast<std::size_t>(n), columns),
                          {},
                          std::vector<Sum>(producers.size())});
    }
  }
}

bool GradientSamples::is_of(const Sampled& sampled, const Head& head) const {
  return sampled.b == head.batch() && sampled.key_head == head.head() / call_.heads_per_group();
}

void GradientSamples::add_row(const Head& head, const Row& row, std::int64_t i, const GradientRow& gradient) {
  std::vector<std::size_t> keys;
  for (const Sampled& sampled : sampled_) {
    if (is_of(sampled, head) && row.seen[static_cast<std::size_t>(sampled.j)])
      keys.push_back(static_cast<std::size_t>(sampled.j));
  }
  if (keys.empty()) return;
  std::ranges::sort(keys);
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  const RowLoss& loss = gradient.loss();
  const RowGradient& g = gradient.gradient();
  const RowGradientDeviation deviation(head, row, i, loss, g, keys);
  const std::vector<double> query = head.query_row(i);
  for (std::size_t n = 0; n < producers_.size(); ++n) {
    for (const TensorId result : {TensorId::dk, TensorId::dv}) {
      const bool by_loss = result == TensorId::dv;
      const RowFactors factors = deviation.of(producers_[n].arithmetic.of(result));
      for (Sampled& sampled : sampled_) {
        const auto j = static_cast<std::size_t>(sampled.j);
        if (sampled.result != result || !is_of(sampled, head) || !row.seen[j]) continue;
        Sum& sum = sampled.sums[n];
        sum.claimed = sum.claimed && factors.claimed;
        if (!sum.claimed) continue;
        if (sampled.key.empty()) sampled.key.assign(head.key_row(sampled.j), head.key_row(sampled.j) + call_.key_dim);
        std::vector<double> y;
        for (const std::int64_t c : sampled.columns)
          y.push_back(by_loss ? loss.out[static_cast<std::size_t>(c)] : query[static_cast<std::size_t>(c)]);
        const auto m = static_cast<std::size_t>(std::ranges::find(keys, j) - keys.begin());
        const PairFactor x = factors.alone(by_loss ? factors.weights[m] : factors.raw[m]);
        sum.terms.add(x, y, query, row.raw[j], row.weights[j], g.products[j]);
      }
    }
  }
}

void GradientSamples::end_head(const Head& head) {
  for (Sampled& sampled : sampled_) {
    for (Sum& sum : sampled.sums) {
      if (is_of(sampled, head)) sum.terms.end_part();
    }
  }
}

void GradientSamples::finish(WholeResults& to) const {
  to.deviations.resize(producers_.size());
  for (const Sampled& sampled : sampled_) {
    const std::int64_t columns = seen_shape(call_, sampled.result)[3];
    const std::int64_t row = (sampled.b * call_.key_heads + sampled.key_head) * call_.key_length + sampled.j;
    for (const std::int64_t c : sampled.columns)
      to.sampled.push_back({sampled.result, static_cast<std::size_t>(row * columns + c)});
    for (std::size_t n = 0; n < producers_.size(); ++n) {
      const Sum& sum = sampled.sums[n];
      const Arithmetic a = producers_[n].arithmetic.of(sampled.result);
      const Storing storing(a, producers_[n].type_of(call_, sampled.result));
      const double scale = sampled.result == TensorId::dk ? call_.scale_value() : 1;
      std::vector<double> sigmas;
      if (sum.claimed) sigmas = sum.terms.deviations(call_, sampled.key, scale, a, storing, {});
      sigmas.resize(sampled.columns.size(), kInfinity);
      std::ranges::copy(sigmas, std::back_inserter(to.deviations[n]));
    }
  }
}

}  // namespace attest
