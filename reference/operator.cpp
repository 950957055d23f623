#include "reference/operator.h"

#include <algorithm>
#include <cmath>

#include "reference/error_deviation.h"
#include "reference/linear_attention.h"
#include "reference/rounding.h"

namespace attest {
namespace {

class SoftmaxHead : public HeadReference {
 public:
  SoftmaxHead(const Problem& p, const Inputs& inputs, std::int64_t b, std::int64_t h,
              const std::vector<Producer>& producers)
      : head_(p, inputs, b, h), producers_(producers) {}

  void attend(std::int64_t i, Row& row) override {
    i_ = i;
    head_.attend(i, row);
  }
  void bound(std::size_t n, const Row& row, RowBound& bound) override {
    bound_row(head_, row, i_, producers_[n].arithmetic, producers_[n].stored, bound);
  }
  std::vector<std::vector<double>> deviations(const Row& row, std::span<const std::int64_t> columns) override {
    const RowDeviation deviation(head_, row, i_, columns);
    std::vector<std::vector<double>> lists;
    for (const Producer& producer : producers_) lists.push_back(deviation.of(producer.arithmetic, producer.stored));
    return lists;
  }

 private:
  Head head_;
  std::int64_t i_ = 0;
  std::vector<Producer> producers_;
};

std::vector<Arithmetic> arithmetics_of(const std::vector<Producer>& producers) {
  std::vector<Arithmetic> list;
  for (const Producer& producer : producers) list.push_back(producer.arithmetic);
  return list;
}

class LinearHead : public HeadReference {
 public:
  LinearHead(const Problem& p, const Inputs& inputs, std::int64_t b, std::int64_t h,
             const std::vector<Producer>& producers)
      : state_(p, inputs, b, h / p.heads_per_group(), arithmetics_of(producers)), h_(h), producers_(producers) {}

  void attend(std::int64_t i, Row& row) override {
    while (state_.tokens() <= i) state_.step();
    i_ = i;
    state_.read(h_, i, row.output);
    row.visible_count = i + 1;
  }
  void bound(std::size_t n, const Row& row, RowBound& bound) override {
    state_.bound_read(n, h_, i_, bound.output);
    const Storing storing(producers_[n].arithmetic, producers_[n].stored);
    for (std::size_t m = 0; m < row.output.size(); ++m) {
      bound.output[m] = storing.bound(std::fabs(row.output[m]), bound.output[m]);
    }
  }
  std::vector<std::vector<double>> deviations(const Row&, std::span<const std::int64_t> columns) override {
    return std::vector(producers_.size(), std::vector<double>(columns.size(), kInfinity));
  }

 private:
  LinearState state_;
  std::int64_t h_, i_ = 0;
  std::vector<Producer> producers_;
};

/// Keys that row i of batch b sees when neither segments nor masks decide: the band, and the prefix outside it.
std::int64_t count_in_band(const Problem& p, std::int64_t b, std::int64_t i) {
  const std::int64_t diagonal = i + p.diagonal_offset(b), keys = p.key_count(b);
  std::int64_t first = 0, last = keys;
  if (p.causal) last = std::min(last, diagonal + 1);
  if (p.window_right < keys - diagonal) last = std::min(last, diagonal + p.window_right + 1);
  if (p.window_left != Problem::kUnbounded) first = std::max(first, diagonal - p.window_left);
  last = std::max(first, last);
  const std::int64_t prefix = std::min(p.prefix, keys);
  const std::int64_t shared = std::max<std::int64_t>(std::min(last, prefix) - first, 0);
  return last - first + prefix - shared;
}

}  // namespace

double count_visible_pairs(const Problem& p, const Inputs& inputs) {
  // Without a mask every head sees the same.
  const bool by_head = inputs.mask || inputs.blocks, simple = !by_head && !p.segments;
  double pairs = 0;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t h = 0; h < (by_head ? p.query_heads : 1); ++h) {
      for (std::int64_t i = 0; i < p.query_count(b); ++i) {
        if (simple) pairs += static_cast<double>(count_in_band(p, b, i));
        for (std::int64_t j = 0; !simple && j < p.key_count(b); ++j) pairs += visible(p, inputs, b, h, i, j);
      }
    }
  }
  return by_head ? pairs : pairs * static_cast<double>(p.query_heads);
}

double useful_operations(const Problem& p, const Inputs& inputs) {
  if (p.op == Op::attention) {
    return 2 * count_visible_pairs(p, inputs) * static_cast<double>(p.key_dim + p.value_dim);
  }
  const double state = static_cast<double>(p.key_dim) * static_cast<double>(p.value_dim);
  const double tokens = static_cast<double>(p.batch) * static_cast<double>(p.query_length);
  const double written = 2 + (p.has_decay() ? 1 : 0) + (p.has_beta() ? 2 : 0);
  return tokens * state * (2 * static_cast<double>(p.query_heads) + written * static_cast<double>(p.key_heads));
}

double row_operations(const Problem& p) {
  if (p.op != Op::attention) return 4 * static_cast<double>(p.key_dim) * static_cast<double>(p.value_dim);
  return static_cast<double>(std::max<std::int64_t>(p.key_length, 1)) * static_cast<double>(p.key_dim + p.value_dim);
}

std::unique_ptr<HeadReference> make_head_reference(const Problem& p, const Inputs& inputs, std::int64_t b,
                                                   std::int64_t h, const std::vector<Producer>& producers) {
  if (p.op == Op::attention) return std::make_unique<SoftmaxHead>(p, inputs, b, h, producers);
  return std::make_unique<LinearHead>(p, inputs, b, h, producers);
}

std::vector<Row> reference_rows(const Problem& p, const Inputs& inputs) {
  if (p.op == Op::attention) return attention(p, inputs).rows;
  std::vector<Row> rows;
  const std::vector<Producer> none;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t h = 0; h < p.query_heads; ++h) {
      const auto head = make_head_reference(p, inputs, b, h, none);
      for (std::int64_t i = 0; i < p.query_length; ++i) head->attend(i, rows.emplace_back());
    }
  }
  return rows;
}

std::vector<ExtraInput> extra_inputs(const Problem& p) {
  std::vector<ExtraInput> list;
  const Index4 rows = {p.batch, p.key_heads, p.query_length, 1};
  if (p.has_decay()) {
    Index4 full = rows;
    full[3] = p.key_dim;
    list.push_back({"decay", &Inputs::decay, p.decay_per_head ? rows : full, full, -1, 0});
  }
  if (p.has_beta()) {
    const Index4 shared = {p.batch, std::min<std::int64_t>(p.key_heads, 1), p.query_length, 1};
    list.push_back({"beta", &Inputs::beta, p.beta_shared ? shared : rows, rows, 0, 1});
  }
  if (p.initial_state) {
    const Index4 shape = {p.batch, p.key_heads, p.key_dim, p.value_dim};
    list.push_back({"past_state", &Inputs::state, shape, shape, -1, 1});
  }
  return list;
}

double key_divisor(const Problem& p) { return p.has_beta() ? std::sqrt(static_cast<double>(p.key_dim)) : 1; }

std::vector<PresentOutput> present_outputs(const Problem& p) {
  if (!p.wants(Output::present)) return {};
  if (p.op != Op::attention) {
    return {{"present_state", &Outputs::present_state, {p.batch, p.key_heads, p.key_dim, p.value_dim}, false}};
  }
  return {{"present_k", &Outputs::present_k, {p.batch, p.key_heads, p.key_length, p.key_dim}, true},
          {"present_v", &Outputs::present_v, {p.batch, p.key_heads, p.key_length, p.value_dim}, true}};
}

namespace {

/// Cached keys or values in front of the new ones, bit for bit.
PresentValues expect_cache(const Inputs& inputs, const PresentOutput& output) {
  PresentValues present;
  const Cache cache = output.place == &Outputs::present_v ? Cache::values : Cache::keys;
  each_index(output.shape, [&](std::int64_t b, std::int64_t h, std::int64_t j, std::int64_t d) {
    present.values.push_back(load_cached(inputs, cache, b, h, j, d));
  });
  return present;
}

PresentValues expect_state(const Problem& p, const Inputs& inputs, const std::vector<Producer>& producers) {
  PresentValues present;
  present.bounds.resize(producers.size());
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t h = 0; h < p.key_heads; ++h) {
      LinearState state(p, inputs, b, h, arithmetics_of(producers));
      while (state.tokens() < p.query_length) state.step();
      for (std::size_t n = 0; n < producers.size(); ++n) {
        const Storing storing(producers[n].arithmetic, producers[n].stored);
        const std::vector<double> errors = state.bounds(n);
        for (std::size_t at = 0; at < errors.size(); ++at) {
          present.bounds[n].push_back(storing.bound(std::fabs(state.values()[at]), errors[at]));
        }
      }
      present.values.insert(present.values.end(), state.values().begin(), state.values().end());
    }
  }
  return present;
}

}  // namespace

PresentValues expect_present(const Problem& p, const Inputs& inputs, const PresentOutput& output,
                             const std::vector<Producer>& producers) {
  if (p.op != Op::attention) return expect_state(p, inputs, producers);
  PresentValues present = expect_cache(inputs, output);
  present.bounds.assign(producers.size(), std::vector<double>(present.values.size()));
  return present;
}

}  // namespace attest
