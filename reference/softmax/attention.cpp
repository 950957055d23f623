#include "reference/softmax/attention.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "reference/base/reference_uses.h"
#include "reference/softmax/key_place.h"
#include "reference/softmax/philox.h"

namespace attest {
namespace {

double additive_at(const Inputs& inputs, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
  const ConstTensor* mask = inputs.mask();
  return mask && is_additive(*mask) ? load(mask->data, mask->dtype, mask->offset(b, h, i, j)) : 0;
}

/// Rows of one head, dense and in float64; rows that are not stored stay 0.
std::vector<double> read_keys(const Call& p, const Inputs& inputs, Cache cache, std::int64_t b, std::int64_t h,
                              ScaleRange& range) {
  const std::int64_t dim = cache == Cache::values ? p.value_dim : p.key_dim;
  const std::int64_t stored = p.stored_keys(b);
  std::vector<double> rows(static_cast<std::size_t>(p.key_length * dim));
  for (std::int64_t j = 0; j < stored; ++j) {
    for (std::int64_t d = 0; d < dim; ++d) {
      rows[static_cast<std::size_t>(j * dim + d)] = load_cached(p, inputs, cache, b, h, j, d);
      if (p.has_stored_scales() && load_code(p, inputs, cache, b, h, j, d) != 0)
        range.add(scale_of_key(p, inputs, cache, b, h, j, d));
    }
  }
  return rows;
}

}  // namespace

Placement locate(const Call& p, std::int64_t b, std::int64_t i, std::int64_t j) {
  if (!p.segments) return {true, i + p.diagonal_offset(b), j};
  const auto& keys = p.segments->key;
  const auto& queries = p.segments->query.empty() ? keys : p.segments->query;
  std::int64_t query_start = 0, key_start = 0;
  for (std::size_t n = 0; n < keys.size(); ++n) {
    const bool holds_query = i < query_start + queries[n], holds_key = j < key_start + keys[n];
    if (holds_query || holds_key) {
      const std::int64_t offset = p.align == Align::bottom_right ? keys[n] - queries[n] : 0;
      return {holds_query && holds_key, i - query_start + offset, j - key_start};
    }
    query_start += queries[n];
    key_start += keys[n];
  }
  return {false, 0, 0};
}

bool visible(const Call& p, const Inputs& inputs, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
  if (i >= p.query_count(b) || j >= p.key_count(b)) return false;
  const Placement at = locate(p, b, i, j);
  if (!at.same_segment) return false;
  bool in_band = true;
  if (p.causal && at.key > at.diagonal) {
    if (p.prefix_causal) return false;
    in_band = false;
  }
  if (p.window_left != Call::kUnbounded && at.diagonal - at.key > p.window_left) in_band = false;
  if (p.window_right != Call::kUnbounded && at.key - at.diagonal > p.window_right) in_band = false;
  if (!in_band && at.key >= p.prefix) return false;
  if (inputs.blocks() && !inputs.block(b, h, i / p.blocks->rows, j / p.blocks->columns)) return false;
  if (p.select && !inputs.selects(b, h / p.heads_per_group(), i, j / p.select->block)) return false;
  const ConstTensor* mask = inputs.mask();
  if (mask && !is_additive(*mask)) return load(mask->data, mask->dtype, mask->offset(b, h, i, j)) != 0;
  return additive_at(inputs, b, h, i, j) != -kInfinity;
}

Head::Head(const Call& call, const Inputs& inputs, std::int64_t b, std::int64_t h)
    : call_(call),
      inputs_(inputs),
      b_(b),
      h_(h),
      keys_(read_keys(call, inputs, Cache::keys, b, h / call.heads_per_group(), key_scales_)),
      values_(read_keys(call, inputs, Cache::values, b, h / call.heads_per_group(), value_scales_)) {
  count_reference_use();
  if (call.prepares_operands()) key_costs_.resize(static_cast<std::size_t>(call.key_length));
  for (std::int64_t j = 0; j < call.stored_keys(b); ++j) {
    if (!is_prepared(call, inputs, Operand::key, b, j)) continue;
    const std::span row(keys_.data() + j * call.key_dim, static_cast<std::size_t>(call.key_dim));
    PreparationCost& cost = key_costs_[static_cast<std::size_t>(j)];
    cost = is_stored_prepared(call, b, j) ? prepare_for_cache(call, inputs, b, j, row)
                                          : prepare_row(call, inputs, Operand::key, b, j, row);
  }
  for (std::int64_t j = 0; j < call.key_length; ++j) {
    double sum = 0;
    for (std::int64_t t = 0; t < call.key_dim; ++t) sum += std::fabs(key_row(j)[t]);
    key_abs_sums_.push_back(sum);
  }
}

ScoreBias Head::bias(std::int64_t i, std::int64_t j) const {
  ScoreBias bias{additive_at(inputs_, b_, h_, i, j), 0};
  if (inputs_.slopes()) {
    const Placement at = locate(call_, b_, i, j);
    const auto distance = static_cast<double>(std::abs(at.diagonal - at.key));
    bias.alibi = -inputs_.slope(b_, h_) * distance;
  }
  return bias;
}

std::vector<double> Head::query_row(std::int64_t i, PreparationCost* cost, ScaleRange* scales) const {
  std::vector<double> q(static_cast<std::size_t>(call_.key_dim));
  for (std::int64_t d = 0; d < call_.key_dim; ++d) {
    q[static_cast<std::size_t>(d)] = load_query(call_, inputs_, b_, h_, i, d);
    if (scales && load_query_code(call_, inputs_, b_, h_, i, d) != 0)
      scales->add(scale_of_query(call_, inputs_, b_, h_, i, d));
  }
  if (call_.prepares_operands()) {
    PreparationCost own = prepare_row(call_, inputs_, Operand::query, b_, i, q);
    if (cost) *cost = std::move(own);
  }
  return q;
}

namespace {

/// Sums of q * k and of their magnitudes, a number for each key. Four keys side by side: a sum waits for its own last
/// addition, and not for those of the others.
void multiply(const Head& head, const std::vector<double>& q, std::vector<double>& sums,
              std::vector<double>& magnitudes) {
  constexpr std::size_t kTogether = 4;
  for (std::size_t first = 0; first < sums.size(); first += kTogether) {
    const std::size_t count = std::min(kTogether, sums.size() - first);
    const double* k[kTogether];
    for (std::size_t n = 0; n < kTogether; ++n)
      k[n] = head.key_row(static_cast<std::int64_t>(first + std::min(n, count - 1)));
    double sum[kTogether] = {}, magnitude[kTogether] = {};
    for (std::size_t t = 0; t < q.size(); ++t) {
      for (std::size_t n = 0; n < kTogether; ++n) {
        sum[n] += q[t] * k[n][t];
        magnitude[n] += std::fabs(q[t] * k[n][t]);
      }
    }
    std::copy_n(sum, count, sums.begin() + static_cast<std::ptrdiff_t>(first));
    std::copy_n(magnitude, count, magnitudes.begin() + static_cast<std::ptrdiff_t>(first));
  }
}

}  // namespace

void Head::attend(std::int64_t i, Row& row) const {
  count_reference_use();
  const auto keys = static_cast<std::size_t>(call_.key_length);
  const auto value_dim = static_cast<std::size_t>(call_.value_dim);
  row.of_query = {};
  row.code_scales = {};
  const std::vector<double> q = query_row(i, &row.of_query, &row.code_scales);
  row.code_scales = row.code_scales * key_scales_;
  row.scale = score_scale(call_, inputs_, b_, h_, i);
  const double scale = row.scale.value;

  row.seen.assign(keys, 0);
  row.raw.resize(keys);
  row.capped.resize(keys);
  row.biased.resize(keys);
  const bool adds = inputs_.slopes() || (inputs_.mask() && is_additive(*inputs_.mask()));
  row.biases.resize(adds ? keys : 0);
  row.factors.clear();
  row.abs_products.resize(keys);
  row.weights.assign(keys, 0);
  row.output.assign(value_dim, 0);
  row.sink = inputs_.sinks() ? inputs_.sink(h_) : -kInfinity;
  row.max = row.sink;
  row.sum = 0;
  row.lse = row.sink;
  row.largest_product = 0;
  row.query_abs_sum = 0;
  for (double value : q) row.query_abs_sum += std::fabs(value);
  row.visible_count = 0;

  multiply(*this, q, row.raw, row.abs_products);
  preparations(q, row);
  for (std::size_t j = 0; j < keys; ++j) {
    const double magnitude = row.abs_products[j], product = row.raw[j];
    row.raw[j] = scale * product;
    row.abs_products[j] = std::fabs(scale) * magnitude;
    row.capped[j] = row.raw[j];
    if (call_.softcap && call_.unscaled_cap)
      row.capped[j] = scale * (*call_.softcap * std::tanh(product / *call_.softcap));
    if (call_.softcap && !call_.unscaled_cap) row.capped[j] = *call_.softcap * std::tanh(row.raw[j] / *call_.softcap);
    if (adds) row.biases[j] = bias(i, static_cast<std::int64_t>(j));
    const ScoreBias added = row.bias(j);
    row.biased[j] = row.capped[j] + added.additive + added.alibi;
    if (!visible(call_, inputs_, b_, h_, i, static_cast<std::int64_t>(j))) continue;
    row.seen[j] = 1;
    ++row.visible_count;
    row.largest_product = std::max(row.largest_product, row.scale.larger * magnitude);
    // NaN must win: a maximum that drops it would hide visible poison.
    if (!std::isnan(row.max) && !(row.biased[j] <= row.max)) row.max = row.biased[j];
  }
  row.sum = row.sink == -kInfinity ? 0 : std::exp(row.sink - row.max);
  if (row.visible_count == 0) return;

  for (std::size_t j = 0; j < keys; ++j) {
    if (!row.seen[j]) continue;
    row.weights[j] = std::exp(row.biased[j] - row.max);
    row.sum += row.weights[j];
  }
  row.lse = row.max + std::log(row.sum);

  dropout_factors(i, row);
  for (std::size_t j = 0; j < keys; ++j) {
    if (!row.seen[j]) continue;
    row.weights[j] /= row.sum;
    const double weight = row.factors.empty() ? row.weights[j] : row.weights[j] * row.factors[j];
    const double* v = value_row(static_cast<std::int64_t>(j));
    for (std::size_t c = 0; c < value_dim; ++c) row.output[c] += weight * v[c];
  }
}

void Head::preparations(const std::vector<double>& q, Row& row) const {
  row.preparations.clear();
  row.stored_keys.clear();
  for (std::size_t j = 0; j < row.raw.size() && call_.prepares_operands(); ++j) {
    const double* const k = key_row(static_cast<std::int64_t>(j));
    const PreparationCost& of_key = key_cost(static_cast<std::int64_t>(j));
    // What storing a key costs has the cost of its steps in it.
    const bool is_stored = !of_key.stored.empty();
    double sum = 0, of_stores = 0;
    for (std::size_t t = 0; t < q.size(); ++t) {
      const double mq = row.of_query.magnitudes[t], mk = of_key.empty() || is_stored ? 0 : of_key.magnitudes[t];
      sum += mq * std::fabs(k[t]) + mk * std::fabs(q[t]) + kLargestPreparation * mq * mk;
      if (is_stored && of_key.stored[t] > 0)
        of_stores += (std::fabs(q[t]) + kLargestPreparation * mq) * of_key.stored[t];
    }
    row.preparations.push_back(std::fabs(row.scale.value) * sum);
    row.stored_keys.push_back(std::fabs(row.scale.value) * of_stores);
  }
}

void Head::dropout_factors(std::int64_t i, Row& row) const {
  if (call_.dropout == 0 && !inputs_.keep()) return;
  const std::uint64_t threshold = dropout_threshold(call_.dropout);
  for (std::int64_t j = 0; j < call_.key_length; ++j) {
    const bool keep =
        inputs_.keep() ? inputs_.kept(b_, h_, i, j) : dropout_keeps(call_.dropout_seed, threshold, b_, h_, i, j);
    row.factors.push_back(keep ? 1 / (1 - call_.dropout) : 0);
  }
}

Attention attention(const Call& call, const Inputs& inputs) {
  Attention result;
  for (std::int64_t b = 0; b < call.batch; ++b) {
    for (std::int64_t h = 0; h < call.query_heads; ++h) {
      const Head head(call, inputs, b, h);
      const std::int64_t rows = call.packed_sequences() ? call.query_count(b) : call.query_length;
      for (std::int64_t i = 0; i < rows; ++i) head.attend(i, result.rows.emplace_back());
    }
  }
  return result;
}

}  // namespace attest
