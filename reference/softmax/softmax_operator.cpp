#include "reference/softmax/softmax_operator.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "reference/call/tensor_table.h"
#include "reference/softmax/attention.h"
#include "reference/softmax/bounds/error_bound.h"
#include "reference/softmax/bounds/error_deviation.h"
#include "reference/softmax/bounds/gradient_deviation.h"
#include "reference/softmax/bounds/gradient_row.h"
#include "reference/softmax/bounds/gradient_sums.h"
#include "reference/softmax/key_place.h"

namespace attest {
namespace {

class SoftmaxHead : public HeadReference {
 public:
  SoftmaxHead(const Call& p, const Inputs& inputs, std::int64_t b, std::int64_t h,
              const std::vector<Producer>& producers)
      : head_(p, inputs, b, h), producers_(producers), of_reference_(p, {reference_arithmetic(), DType::f64}) {
    for (const Producer& producer : producers) {
      constants_.emplace_back(p, producer);
      std::vector<OwnConstants>& own = own_.emplace_back();
      for (const ResultRounding& one : producer.arithmetic.of_results)
        own.push_back({one.result, BoundConstants(p, {Arithmetic{one.rounding, {}}, producer.stored})});
    }
    if (has_tensor(p, TensorId::dq)) gradient_.emplace(p, inputs, producers);
  }

  void attend(std::int64_t i, ResultValues& row) override {
    i_ = i;
    head_.attend(i, row_);
    if (!producers_.empty()) sums_ = row_sums(head_, row_, i, of_reference_);
    fill(row, row_);
    // Handed out, hidden keys are at -inf.
    std::vector<double>& biased = row.of(TensorId::biased);
    for (std::size_t j = 0; j < biased.size(); ++j) {
      if (!row_.seen[j]) biased[j] = -kInfinity;
    }
    if (gradient_) attend_gradient(row.of(TensorId::dq));
  }
  void bound(std::size_t n, ResultValues& bound) override {
    if (head_.call().runs_forward()) {
      bound_row(head_, row_, sums_, i_, constants_[n], bound_);
      fill(bound, bound_);
    }
    for (const OwnConstants& own : own_[n]) {
      if (!head_.call().runs_forward()) break;
      ResultValues other;
      bound_row(head_, row_, sums_, i_, own.constants, bound_);
      fill(other, bound_);
      if (!other.of(own.result).empty()) bound.of(own.result) = other.of(own.result);
    }
    if (gradient_) bound_gradient(n, bound.of(TensorId::dq));
  }
  std::vector<std::vector<double>> deviations(TensorId result, std::span<const std::int64_t> columns) override {
    if (result == TensorId::dq) return gradient_deviations(columns);
    if (result != TensorId::out) return {};
    const RowDeviation deviation(head_, row_, i_, columns);
    std::vector<std::vector<double>> lists;
    for (const Producer& producer : producers_)
      lists.push_back(deviation.of({producer.arithmetic.of(TensorId::out), producer.stored}));
    return lists;
  }

 private:
  /// Of a result that is rounded otherwise.
  struct OwnConstants {
    TensorId result;
    BoundConstants constants;
  };

  /// dq_i = scale * sum over j of dT_ij * k_j.
  void attend_gradient(std::vector<double>& dq) {
    gradient_->set(head_, row_, i_);
    dq.assign(static_cast<std::size_t>(head_.call().key_dim), 0);
    for (std::size_t j = 0; j < row_.seen.size(); ++j) {
      const double* key = head_.key_row(static_cast<std::int64_t>(j));
      for (std::size_t d = 0; row_.seen[j] && d < dq.size(); ++d) dq[d] += gradient_->gradient().raw[j] * key[d];
    }
    for (double& value : dq) value *= head_.call().scale_value();
    dq_ = dq;
  }
  void bound_gradient(std::size_t n, std::vector<double>& bound) {
    const BoundConstants& c = gradient_->constants(n, TensorId::dq);
    const RowGradientErrors& errors = gradient_->errors(n, TensorId::dq);
    const Storing storing(c.arithmetic, producers_[n].type_of(head_.call(), TensorId::dq));
    std::vector<GradientSum> sums(dq_.size());
    for (std::size_t j = 0; j < row_.seen.size(); ++j) {
      const double* key = head_.key_row(static_cast<std::int64_t>(j));
      for (std::size_t d = 0; row_.seen[j] && d < sums.size(); ++d)
        sums[d].add(gradient_->gradient().raw[j], errors.raw[j], key[d]);
    }
    bound.resize(sums.size());
    for (std::size_t d = 0; d < sums.size(); ++d)
      bound[d] =
          bound_gradient_sum(sums[d], dq_[d], head_.call().scale_value(), c.scale_roundings + 1 + c.blocks, c, storing);
  }

  std::vector<std::vector<double>> gradient_deviations(std::span<const std::int64_t> columns) const {
    const Call& p = head_.call();
    std::vector<std::size_t> keys;
    for (std::size_t j = 0; j < row_.seen.size(); ++j) {
      if (row_.seen[j]) keys.push_back(j);
    }
    const RowGradient& g = gradient_->gradient();
    const RowGradientDeviation deviation(head_, row_, i_, gradient_->loss(), g, keys);
    std::vector<std::vector<double>> lists;
    for (const Producer& producer : producers_) {
      const Arithmetic a = producer.arithmetic.of(TensorId::dq);
      const RowFactors factors = deviation.of(a);
      lists.emplace_back(columns.size(), kInfinity);
      if (!factors.claimed) continue;
      GradientDeviation terms;
      std::vector<double> y(columns.size());
      for (std::size_t m = 0; m < keys.size(); ++m) {
        const double* key = head_.key_row(static_cast<std::int64_t>(keys[m]));
        std::ranges::transform(columns, y.begin(), [&](std::int64_t c) { return key[c]; });
        terms.add(factors.raw[m], y, {key, static_cast<std::size_t>(p.key_dim)}, row_.raw[keys[m]],
                  row_.weights[keys[m]], g.products[keys[m]]);
      }
      const Storing storing(a, producer.type_of(p, TensorId::dq));
      lists.back() = terms.deviations(p, head_.query_row(i_), p.scale_value(), a, storing, factors);
    }
    return lists;
  }

  /// `from` is a Row or a RowBound.
  void fill(ResultValues& to, const auto& from) const {
    if (!head_.call().runs_forward()) return;
    to.of(TensorId::out) = from.output;
    to.of(TensorId::lse) = {from.lse};
    if (has_tensor(head_.call(), TensorId::row_max)) to.of(TensorId::row_max) = {from.max};
    if (has_tensor(head_.call(), TensorId::row_sum)) to.of(TensorId::row_sum) = {from.sum};
    const auto stage = [&](TensorId id, const std::vector<double>& list) {
      if (has_tensor(head_.call(), id)) to.of(id) = list;
    };
    stage(TensorId::raw, from.raw);
    stage(TensorId::capped, from.capped);
    stage(TensorId::biased, from.biased);
    stage(TensorId::weights, from.weights);
  }

  Head head_;
  Row row_;
  RowBound bound_;
  std::int64_t i_ = 0;
  RowSums sums_;
  std::optional<GradientRow> gradient_;  ///< where the call asks for dq
  std::vector<double> dq_;
  std::vector<Producer> producers_;
  BoundConstants of_reference_;
  std::vector<BoundConstants> constants_;       ///< one for each producer
  std::vector<std::vector<OwnConstants>> own_;  ///< likewise
};

/// Keys that row i of batch b sees when neither segments nor masks decide: the band, and the prefix outside it.
std::int64_t count_in_band(const Call& p, std::int64_t b, std::int64_t i) {
  const std::int64_t diagonal = i + p.diagonal_offset(b), keys = p.key_count(b);
  std::int64_t first = 0, last = keys;
  if (p.causal) last = std::min(last, diagonal + 1);
  if (p.window_right < keys - diagonal) last = std::min(last, diagonal + p.window_right + 1);
  if (p.window_left != Call::kUnbounded) first = std::max(first, diagonal - p.window_left);
  last = std::max(first, last);
  std::int64_t prefix = std::min(p.prefix, keys);
  if (p.prefix_causal) prefix = std::clamp<std::int64_t>(diagonal + 1, 0, prefix);
  const std::int64_t shared = std::max<std::int64_t>(std::min(last, prefix) - first, 0);
  return last - first + prefix - shared;
}

class SoftmaxOperator : public Operator {
 public:
  std::unique_ptr<HeadReference> head(const Call& p, const Inputs& inputs, std::int64_t b, std::int64_t h,
                                      const std::vector<Producer>& producers) const override {
    return std::make_unique<SoftmaxHead>(p, inputs, b, h, producers);
  }
  WholeResults whole(const Call& p, const Inputs& inputs, const std::vector<TensorId>& results,
                     const std::vector<Producer>& producers, const std::vector<char>& of_key_heads) const override {
    std::vector<TensorId> gradients;
    std::ranges::copy_if(results, std::back_inserter(gradients),
                         [](TensorId id) { return is_gradient(*row_of(id).result); });
    WholeResults all{{}, std::vector<ResultValues>(producers.size())};
    if (!gradients.empty()) all = sum_gradients(p, inputs, gradients, producers, of_key_heads);
    for (const TensorId id : results) {
      if (is_cache(id))
        append_to_cache(p, inputs, id, producers, all);
      else if (is_copied(id))
        copy_cache(p, inputs, id, all);
    }
    return all;
  }
  /// Cached keys or values in front of the new ones, bit for bit.
  static void copy_cache(const Call& p, const Inputs& inputs, TensorId result, WholeResults& to) {
    std::vector<double>& present = to.values.of(result);
    const Cache cache = result == TensorId::present_v ? Cache::values : Cache::keys;
    each_index(seen_shape(p, result), [&](std::int64_t b, std::int64_t h, std::int64_t j, std::int64_t d) {
      present.push_back(load_cached(p, inputs, cache, b, h, j, d));
    });
    for (ResultValues& bounds : to.bounds) bounds.of(result).assign(present.size(), 0.0);
  }
  /// The cache as it was, bit for bit, but for the new keys or values. New keys that are rotated first have a bound.
  static void append_to_cache(const Call& p, const Inputs& inputs, TensorId result,
                              const std::vector<Producer>& producers, WholeResults& to) {
    std::vector<double>& after = to.values.of(result);
    const Cache cache = result == TensorId::cache_v ? Cache::values : Cache::keys;
    const ConstTensor& before = cache == Cache::values ? inputs.v() : inputs.k();
    const Index4 n = before.shape;
    each_index(n, [&](std::int64_t store, std::int64_t h, std::int64_t row, std::int64_t d) {
      after.push_back(load(before.data, before.dtype, before.offset(store, h, row, d)));
    });
    std::vector<double> off(after.size(), 0.0);
    std::vector<std::size_t> prepared;  // places of the components that have steps behind them
    for (std::int64_t b = 0; b < p.batch; ++b) {
      for (std::int64_t j = p.first_new_key(b); j < p.key_count(b); ++j) {
        const KeyPlace place = place_in_cache(inputs, b, j);
        for (std::int64_t h = 0; h < n[1]; ++h) {
          std::vector<double> row;
          for (std::int64_t d = 0; d < n[3]; ++d) row.push_back(load_cached(p, inputs, cache, b, h, j, d));
          PreparationCost cost;
          if (cache == Cache::keys && is_stored_prepared(p, b, j)) cost = prepare_for_cache(p, inputs, b, j, row);
          const std::int64_t first = ((place.batch * n[1] + h) * n[2] + place.row) * n[3];
          for (std::size_t d = 0; d < row.size(); ++d) {
            const std::size_t at = static_cast<std::size_t>(first) + d;
            after[at] = row[d];
            if (cost.stored.empty()) continue;
            off[at] = cost.stored[d];
            prepared.push_back(at);
          }
        }
      }
    }
    for (std::size_t one = 0; one < producers.size(); ++one) {
      std::vector<double>& bounds = to.bounds[one].of(result);
      bounds = off;
      // A new key's bound is that of steps that cost so much. Of coarser ones nothing is proved.
      const Producer of_cache{producers[one].arithmetic.of(result), producers[one].stored};
      if (BoundConstants(p, of_cache).of_preparation <= kept_cost(p)) continue;
      for (const std::size_t at : prepared) bounds[at] = kInfinity;
    }
  }
  double row_operations(const Call& p) const override {
    return static_cast<double>(std::max<std::int64_t>(p.key_length, 1)) *
           (products(p) + (p.wants_gradients() && !p.runs_forward() ? forward_products(p) : 0));
  }
  double multiply_adds(const Call& p) const override {
    return dense_multiply_adds(p) * products(p) / forward_products(p);
  }
  double useful_operations(const Call& p, const Inputs& inputs) const override {
    return 2 * count_visible_pairs(p, inputs) * products(p);
  }

 private:
  static double forward_products(const Call& p) { return static_cast<double>(p.key_dim + p.value_dim); }
  /// Multiply-adds of a visible pair: q*k and p*v; q*k once more, do*v, and those of dq, dk and dv.
  static double products(const Call& p) {
    const double gradients = static_cast<double>(3 * p.key_dim + 2 * p.value_dim);
    return (p.runs_forward() ? forward_products(p) : 0) + (p.wants_gradients() ? gradients : 0);
  }
};

}  // namespace

const Operator& softmax_operator() {
  static const SoftmaxOperator softmax;
  return softmax;
}

double count_visible_pairs(const Call& p, const Inputs& inputs) {
  // Without a mask every head sees the same.
  const bool by_head = inputs.mask() || inputs.blocks() || inputs.indices(), simple = !by_head && !p.segments;
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

}  // namespace attest
