#include "tests/emulator/emulator.h"

#include <algorithm>
#include <numbers>

#include "backends/support/host_results.h"
#include "harness/backends/isolation/arithmetic_json.h"
#include "reference/softmax/attention.h"
#include "tests/emulator/codes.h"
#include "tests/emulator/gradients.h"
#include "tests/emulator/group_steps.h"
#include "tests/emulator/scores.h"
#include "tests/emulator/sum_steps.h"

namespace attest::emulator {
namespace {

class EmulatorPlan : public Plan {
 public:
  EmulatorPlan(const Call& call, const Emulated& emulated)
      : p_(call), e_(emulated), a_(emulated.does), results_(call) {}

  void upload(const Inputs& inputs) override { inputs_ = inputs; }

  void run() override {
    results_.clear_gradients();
    Steps steps(a_, e_.behaviour, e_.clamped_exp);
    steps.seed(e_.seed);
    steps.choose_order();
    walk_ = a_.key_block > 0 ? static_cast<Walk>(e_.seed / 7 % (a_.lazy_threshold > 0 ? 2 : 3)) : Walk::forwards;
    Scores scores(p_, a_, steps);
    Gradients gradients(p_, inputs_, a_, steps, scores, results_);
    for (std::int64_t b = 0; b < p_.batch; ++b) {
      for (std::int64_t h = 0; h < p_.query_heads; ++h) {
        const Head head(p_, inputs_, b, h);
        for (std::int64_t i = 0; i < p_.stored_queries(b); ++i) {
          head.attend(i, exact_);
          if (p_.runs_forward()) attend(head, i, results_.row(b, h, i), steps, scores);
          if (!p_.wants_gradients()) continue;
          gradients.add_row(head, exact_, i, gradient_weights(head, i, gradients.lse(head, i), steps, scores));
        }
        if (p_.wants_gradients()) gradients.end_head(head);
      }
    }
    if (p_.wants_gradients()) gradients.finish();
    if (p_.wants_scores()) write_stages();
  }

  void download(const Outputs& outputs) override { results_.download(inputs_, outputs); }

 private:
  struct Key {
    std::size_t j;
    int push;
    Number score, weight;
    Number step = 1;  ///< of the weight in P*V
  };

  /// Where the steps of an online softmax start, which nobody declares: from either end, or each by itself, and their
  /// states are merged in pairs.
  enum class Walk { forwards, backwards, tree };

  /// What was summed over some keys, under their maximum.
  struct State {
    Number max = kHidden, sum = 0;
    std::vector<Number> values;
  };

  /// exp(score - max), by whichever function is declared.
  Number exp_below(Number score, Number max, int push, Steps& steps, bool rescales = false) const {
    if (a_.no_maximum) max = 0;
    return exp_less(score, max, push, steps, rescales);
  }
  Number exp_less(Number score, Number less, int push, Steps& steps, bool rescales) const {
    if (!a_.fused_log2e) return steps.exp(less == 0 ? score : steps.round(score - less, push), push, rescales);
    const Number log2e = steps.nearest(std::numbers::log2e_v<Number>);
    return steps.exp2(steps.round(std::fma(score, log2e, -steps.round(less * log2e)), push), push, rescales);
  }

  /// Weights for P*V are multiplied by their factor, or get it from a maximum that is lowered by its logarithm.
  bool lowers_maximum() const { return a_.weight_factor != 1 && !a_.normalised_before_storage && e_.seed % 2 == 1; }
  Number lowered(Number max, const Steps& steps) const {
    const Number factor = a_.weight_factor, log = a_.base2 ? std::log2(factor) : std::log(factor);
    return steps.round((a_.no_maximum ? 0 : max) - steps.round(log));
  }
  Number multiplied(Number weight, int push, const Steps& steps) const {
    if (a_.weight_factor == 1 || lowers_maximum()) return weight;
    return steps.round(weight * static_cast<Number>(a_.weight_factor), push);
  }
  /// Of the weights in the row's sum.
  Number factor_in_sum() const {
    const bool there = lowers_maximum() || (a_.sum_of_stored && !a_.normalised_before_storage);
    return there ? static_cast<Number>(a_.weight_factor) : 1;
  }

  /// Under a maximum of -inf nothing has been seen but scores that overflowed.
  Number weight_of(const Key& key, Number max, Steps& steps) const {
    if (max == kHidden && !a_.no_maximum) return 0;
    if (lowers_maximum()) return exp_less(key.score, lowered(max, steps), key.push, steps, false);
    return exp_below(key.score, max, key.push, steps);
  }

  /// Whether more of key j raises the output that the adversary wants large.
  int push_of(const Head& head, std::size_t j, std::size_t column) const {
    const double factor = exact_.factors.empty() ? 1 : exact_.factors[j];
    return factor * head.value_row(static_cast<std::int64_t>(j))[column] < exact_.output[column] ? -1 : 1;
  }

  void attend(const Head& head, std::int64_t i, std::size_t row, Steps& steps, Scores& scores) {
    const auto columns = static_cast<std::size_t>(p_.value_dim);
    double* out = results_.out_row(row);
    std::fill_n(out, columns, 0.0);
    const bool has_sink = exact_.sink != -kInfinity;
    const Number sink = has_sink ? scores.sink(exact_.sink) : kHidden;
    results_.lse[row] = natural(sink, steps, scores);
    if (exact_.visible_count == 0) return;

    const std::size_t column = static_cast<std::size_t>(i) % columns;
    scores.set_query(head, i);
    keys_.clear();
    for (std::size_t j = 0; j < exact_.seen.size(); ++j) {
      if (!exact_.seen[j]) continue;
      const auto key = static_cast<std::int64_t>(j);
      const int push = push_of(head, j, column);
      keys_.push_back({j, push, scores.score(head, key, exact_.bias(j), push).biased, 0});
    }
    const int sum_push = exact_.output[column] < 0 ? 1 : -1;
    Number max = sink, sum = !has_sink ? 0 : a_.no_maximum ? exp_below(sink, 0, 1, steps) : 1;
    sum = steps.round(sum * factor_in_sum());
    sums_.assign(columns, 0);
    set_value_scales(head);
    set_value_steps(head, steps);
    const std::vector<Range> blocks = blocks_of_keys();
    std::vector<State> states;
    for (const auto& [first, last] : blocks) {
      if (walk_ == Walk::tree) {
        max = kHidden, sum = 0;
        sums_.assign(columns, 0);
      }
      if (!a_.no_maximum) raise_maximum(first, last, max, sum, sum_push, steps);
      for (std::size_t n = first; n < last; ++n) {
        Key& key = keys_[n];
        key.weight = weight_of(key, max, steps);
      }
      set_weight_steps(first, last, steps);
      sum = add_weights(first, last, sum, sum_push, steps);
      if (!a_.normalised_before_storage) add_values(head, first, last, steps, false);
      if (walk_ == Walk::tree) states.push_back({max, sum, sums_});
    }
    if (walk_ == Walk::tree) {
      if (has_sink) states.push_back({sink, factor_in_sum(), std::vector<Number>(columns)});
      State all = merged(states, 0, states.size(), sum_push, steps);
      max = all.max, sum = all.sum, sums_ = std::move(all.values);
    }
    if (a_.normalised_before_storage) {
      for (Key& key : keys_) {
        key.weight = steps.divide(weight_of(key, max, steps), sum, key.push, false);
      }
      set_weight_steps(0, keys_.size(), steps);
      add_values(head, 0, keys_.size(), steps, true);
    }
    const Number divisor = a_.normalised_before_storage
                               ? static_cast<Number>(a_.weight_factor)
                               : steps.round(sum * (static_cast<Number>(a_.weight_factor) / factor_in_sum()));
    for (std::size_t c = 0; c < columns; ++c) {
      const bool ends = ends_with_division();
      Number o = a_.normalised_before_storage ? sums_[c] : steps.divide(sums_[c], divisor, 1, ends);
      if (a_.normalised_before_storage && divisor != 1)
        o = ends ? steps.nearest(o / divisor) : steps.round(o / divisor);
      for (int n = 1; n <= a_.output_roundings; ++n) {
        o = n < a_.output_roundings || value_scale_ != 1 ? steps.round(o * kOperandScale)
                                                         : steps.nearest(o * kOperandScale);
      }
      if (value_scale_ != 1) o = steps.nearest(o * value_scale_);
      out[c] = static_cast<double>(o);
    }
    Number logarithm = steps.log(sum, 1);
    if (lowers_maximum()) {
      results_.lse[row] = natural(logarithm + lowered(max, steps), steps, scores);
    } else {
      if (factor_in_sum() != 1) logarithm = steps.round(logarithm + lowered(0, steps));
      results_.lse[row] = natural(a_.no_maximum ? logarithm : max + logarithm, steps, scores);
    }
    if (a_.key_rounding.mean_removed)
      results_.lse[row] = static_cast<double>(steps.nearest(results_.lse[row] + scores.mean_score(head, i)));
  }

  /// The last steps of lse: its sum rounded, and back from units of log 2.
  double natural(Number lse, const Steps& steps, const Scores& scores) const {
    if (!a_.base2 || !std::isfinite(lse)) return static_cast<double>(steps.nearest(lse));
    return static_cast<double>(steps.nearest(steps.round(lse) * steps.round(1 / scores.log2e())));
  }

  using Range = std::pair<std::size_t, std::size_t>;
  /// Of keys_, in the order in which they are taken.
  std::vector<Range> blocks_of_keys() const {
    const std::size_t block = a_.key_block > 0 ? static_cast<std::size_t>(a_.key_block) : exact_.seen.size();
    std::vector<Range> blocks;
    for (std::size_t first = 0; first < keys_.size();) {
      std::size_t last = first;
      while (last < keys_.size() && keys_[last].j / block == keys_[first].j / block) ++last;
      blocks.emplace_back(first, last);
      first = last;
    }
    if (walk_ == Walk::backwards) std::reverse(blocks.begin(), blocks.end());
    return blocks;
  }

  /// States of neighbours, merged in pairs and not divided.
  State merged(const std::vector<State>& states, std::size_t first, std::size_t last, int push, Steps& steps) const {
    if (last - first == 1) return states[first];
    const std::size_t middle = first + (last - first) / 2;
    State a = merged(states, first, middle, push, steps), b = merged(states, middle, last, push, steps);
    if (std::isnan(a.max) || !(b.max <= a.max)) std::swap(a, b);
    // Under no maximum nothing is rescaled, but what is no number stays none.
    // As where blocks follow each other, nothing is rescaled when the maximum stays.
    const Number shrink = b.max == a.max || b.max == kHidden ? 1 : exp_below(b.max, a.max, 1, steps, true);
    const SumSteps of_weights(a_, a_.weight_sum, steps), of_values(a_, a_.value_sum, steps);
    a.sum = of_weights.joined(a.sum + of_weights.rescaled(b.sum * shrink, push), push);
    for (std::size_t c = 0; c < a.values.size(); ++c) {
      a.values[c] = of_values.joined(a.values[c] + of_values.rescaled(b.values[c] * shrink, 1), 1);
    }
    return a;
  }

  /// Moves the running maximum on, unless it may lag, and shrinks what was summed under the old one.
  void raise_maximum(std::size_t first, std::size_t last, Number& max, Number& sum, int sum_push, Steps& steps) {
    Number highest = kHidden;
    for (std::size_t n = first; n < last; ++n) {
      if (!(keys_[n].score <= highest)) highest = keys_[n].score;
      if (std::isnan(keys_[n].score)) break;
    }
    const Number lag = a_.lazy_threshold * (a_.base2 ? std::numbers::log2e_v<Number> : 1);
    if (max == kHidden) {
      max = highest;
    } else if (!(highest <= max + lag)) {
      const Number shrink = exp_below(max, highest, 1, steps, true);
      const SumSteps of_weights(a_, a_.weight_sum, steps), of_values(a_, a_.value_sum, steps);
      sum = of_weights.rescaled(sum * shrink, sum_push);
      for (Number& o : sums_) o = of_values.rescaled(o * shrink, 1);
      max = highest;
    }
  }

  Number unstored(const Key& key, const Steps& steps) const {
    const Number weight = multiplied(key.weight, key.push, steps);
    return value_scales_ == ValueScales::of_weights ? steps.round(weight * scale_of_value(key), key.push) : weight;
  }
  Number stored(const Key& key, const Steps& steps) const {
    return steps.weight(unstored(key, steps), key.step, key.push);
  }

  /// Of weights that share a step; a block's end ends a group, too.
  void set_weight_steps(std::size_t first, std::size_t last, const Steps& steps) {
    if (a_.weight_rounding.step != 0) return;
    const std::size_t keys = exact_.seen.size(), rows = static_cast<std::size_t>(a_.weight_rounding.rows);
    std::vector<Number> weights(keys, 0);
    for (std::size_t n = first; n < last; ++n) weights[keys_[n].j] = std::fabs(unstored(keys_[n], steps));
    for (std::size_t n = first; n < last; ++n) keys_[n].step = weight_step(weights, keys_[n].j, rows, steps);
  }
  Number weight_step(const std::vector<Number>& weights, std::size_t j, std::size_t rows, const Steps& steps) const {
    const std::size_t group = rows > 0 ? rows : weights.size(), from = j / group * group;
    const auto begin = weights.begin() + static_cast<std::ptrdiff_t>(from);
    const auto end = weights.begin() + static_cast<std::ptrdiff_t>(std::min(from + group, weights.size()));
    return step_of(*std::max_element(begin, end), a_.weight_operand, a_.weight_rounding, steps);
  }

  void set_value_steps(const Head& head, const Steps& steps) {
    const bool behind = value_scales_ != ValueScales::of_values;
    const bool is_scaled = (p_.v_scale && !behind) || (p_.latent && p_.k_scale);
    value_steps_ =
        GroupSteps(a_.value_operand, a_.value_rounding, static_cast<std::size_t>(p_.stored_keys(head.batch())),
                   static_cast<std::size_t>(p_.value_dim), 1, steps, [&](std::size_t j) {
                     std::vector<Number> row;
                     for (const double x : coded_key(head, Cache::values, static_cast<std::int64_t>(j), behind).numbers)
                       row.push_back(steps.input(x, is_scaled));
                     return row;
                   });
  }

  /// Where the scales of values that are codes go: into the values, into weights before or after they are stored, or
  /// behind the sum if they all have one.
  enum class ValueScales { of_values, of_weights, of_stored_weights, of_sum };
  void set_value_scales(const Head& head) {
    value_scale_ = 1;
    value_scales_ = ValueScales::of_values;
    if (!has_row_scale(p_.v_scale) || keys_.empty()) return;
    scales_of_values_.assign(exact_.seen.size(), 1);
    for (const Key& key : keys_)
      scales_of_values_[key.j] = coded_key(head, Cache::values, static_cast<std::int64_t>(key.j), true).scale;
    value_scales_ = static_cast<ValueScales>(e_.seed / 11 % 4);
    // A sum of stored weights is one of weights alone.
    if (value_scales_ == ValueScales::of_weights && a_.sum_of_stored) value_scales_ = ValueScales::of_stored_weights;
    if (value_scales_ != ValueScales::of_sum) return;
    const Number first = scales_of_values_[keys_.front().j];
    const bool differ =
        std::any_of(keys_.begin(), keys_.end(), [&](const Key& key) { return scales_of_values_[key.j] != first; });
    if (differ) {
      value_scales_ = ValueScales::of_stored_weights;
    } else {
      value_scale_ = first;
    }
  }
  Number scale_of_value(const Key& key) const { return scales_of_values_[key.j]; }
  /// Whether nothing is multiplied in behind the division, or behind the sum where weights are divided.
  bool ends_with_division() const { return a_.output_roundings == 0 && value_scale_ == 1; }

  Number add_weights(std::size_t first, std::size_t last, Number sum, int push, Steps& steps) {
    terms_.clear();
    const SumSteps of_weights(a_, a_.weight_sum, steps);
    for (std::size_t n = first; n < last; ++n) {
      const Key& key = keys_[n];
      const Number weight = a_.sum_of_stored ? stored(key, steps) : key.weight;
      terms_.push_back(of_weights.term(weight, push));
    }
    const Number added = of_weights.sum(terms_, push);
    return sum == 0 ? added : of_weights.joined(sum + added, push);
  }

  void add_values(const Head& head, std::size_t first, std::size_t last, Steps& steps, bool end) {
    const bool behind = value_scales_ != ValueScales::of_values;
    const bool is_scaled = (p_.v_scale && !behind) || (p_.latent && p_.k_scale);
    std::vector<CodedRow> values;
    for (std::size_t n = first; n < last; ++n) {
      Key& key = keys_[n];
      values.push_back(coded_key(head, Cache::values, static_cast<std::int64_t>(key.j), behind));
      key.weight = stored(key, steps);
      if (value_scales_ == ValueScales::of_stored_weights) {
        key.weight = steps.round(key.weight * scale_of_value(key), key.push);
      }
      if (!exact_.factors.empty()) {
        key.weight = exact_.factors[key.j] == 0 ? 0 : steps.round(key.weight * steps.round(exact_.factors[key.j]));
      }
    }
    const SumSteps of_values(a_, a_.value_sum, steps);
    const Number unscaled = std::pow(kOperandScale, a_.output_roundings);
    end = end && ends_with_division();
    for (std::size_t c = 0; c < sums_.size(); ++c) {
      terms_.clear();
      for (std::size_t n = first; n < last; ++n) {
        const Number read = steps.input(values[n - first].numbers[c], is_scaled);
        const Number step = value_steps_.step(keys_[n].j, c);
        const Number v = steps.operand(read, a_.value_operand, a_.value_rounding, step, 1);
        const auto products = steps.products(keys_[n].weight, a_.weight_operand, v, a_.value_operand);
        const bool is_sum = end && last - first == 1 && products.size() == 1;
        for (const Number product : products) terms_.push_back(of_values.product(product / unscaled, 1, is_sum));
      }
      const Number added = of_values.sum(terms_, 1, end);
      sums_[c] = end || sums_[c] == 0 ? added : of_values.joined(sums_[c] + added, 1);
    }
  }

  /// Stages are computed once more, in natural units and rounded to nearest: they are handed over as they are.
  void write_stages() {
    Arithmetic natural = a_;
    natural.base2 = false;
    if (natural.scale == ScalePlacement::folded_log2e) natural.scale = ScalePlacement::score;
    Steps steps(natural, Behaviour::random, e_.clamped_exp);
    steps.seed(e_.seed);
    steps.choose_order();
    Scores scores(p_, natural, steps);
    for (std::int64_t b = 0; b < p_.batch; ++b) {
      for (std::int64_t h = 0; h < p_.query_heads; ++h) {
        const Head head(p_, inputs_, b, h);
        for (std::int64_t i = 0; i < p_.stored_queries(b); ++i) {
          head.attend(i, exact_);
          write_stage_row(head, i, results_.row(b, h, i), steps, scores);
        }
      }
    }
  }

  /// exp(score - lse): without a maximum its sum is taken out in the same way.
  Number from_lse(Number score, Number lse, Steps& steps) const {
    if (!a_.fused_log2e) return steps.exp(steps.round(score - lse), 1);
    const Number log2e = steps.nearest(std::numbers::log2e_v<Number>);
    return steps.exp2(steps.round(std::fma(score, log2e, -steps.round(lse * log2e))), 1);
  }

  void write_stage_row(const Head& head, std::int64_t i, std::size_t row, Steps& steps, Scores& scores) {
    scores.set_query(head, i);
    std::vector<Number> biased(exact_.seen.size(), kHidden);
    Number max = exact_.sink;
    const auto put = [&](std::vector<double>& stage, std::size_t j, Number x) {
      if (double* to = results_.stage_row(stage, row)) to[j] = static_cast<double>(x);
    };
    for (std::size_t j = 0; j < biased.size(); ++j) {
      const auto key = static_cast<std::int64_t>(j);
      const Scores::Stages s = scores.score(head, key, exact_.seen[j] ? exact_.bias(j) : ScoreBias{}, 1);
      put(results_.raw, j, s.raw);
      put(results_.capped, j, s.capped);
      if (exact_.seen[j]) biased[j] = s.biased;
      put(results_.biased, j, biased[j]);
      if (exact_.seen[j] && !(biased[j] <= max)) max = biased[j];
    }
    if (!results_.stage_row(results_.weights, row)) return;
    const std::vector<Number> weights = weights_of(biased, exact_.sink, max, a_.weights_from_lse, steps);
    for (std::size_t j = 0; j < biased.size(); ++j) {
      const bool is_stored = exact_.seen[j] && a_.normalised_before_storage && !a_.weights_from_lse;
      const auto rows = static_cast<std::size_t>(a_.weight_rounding.rows);
      const Number step = is_stored && a_.weight_rounding.step == 0 ? weight_step(weights, j, rows, steps) : 1;
      put(results_.weights, j, is_stored ? stored_stage(weights[j], step, steps) : weights[j]);
    }
  }

  Number stored_stage(Number weight, Number step, const Steps& steps) const {
    if (a_.weight_factor == 1 && step == 1) return steps.stored(weight, a_.stored_weights, 1);
    return steps.nearest(steps.weight(multiplied(weight, 1, steps), step, 1) / static_cast<Number>(a_.weight_factor));
  }

  /// Weights of biased scores, with a maximum and a sum of their own; 0 where hidden.
  std::vector<Number> weights_of(const std::vector<Number>& biased, Number sink, Number max, bool by_lse,
                                 Steps& steps) {
    terms_.clear();
    if (exact_.sink != -kInfinity) terms_.push_back(exp_below(sink, max, 1, steps));
    std::vector<Number> weights(biased.size(), 0);
    for (std::size_t j = 0; j < biased.size(); ++j) {
      if (exact_.seen[j]) terms_.push_back(weights[j] = exp_below(biased[j], max, 1, steps));
    }
    const SumSteps of_weights(a_, a_.weight_sum, steps);
    for (Number& weight : terms_) weight = of_weights.term(weight, 1);
    const Number sum = of_weights.sum(terms_, 1), logarithm = steps.log(sum, 1);
    const Number lse = steps.round(a_.no_maximum ? logarithm : max + logarithm);
    for (std::size_t j = 0; j < biased.size(); ++j) {
      if (!exact_.seen[j]) continue;
      weights[j] = by_lse ? steps.nearest(from_lse(biased[j], lse, steps)) : steps.divide(weights[j], sum, 1, true);
    }
    return weights;
  }

  /// The weights of the row as a backward pass has them.
  GradientWeights gradient_weights(const Head& head, std::int64_t i, Number saved_lse, Steps& steps, Scores& scores) {
    GradientWeights row;
    row.keys.assign(exact_.seen.size(), 0);
    row.slopes.assign(exact_.seen.size(), 1);
    scores.set_query(head, i);
    std::vector<Number> biased(exact_.seen.size(), kHidden);
    const bool has_sink = exact_.sink != -kInfinity;
    const Number sink = has_sink ? scores.sink(exact_.sink) : kHidden;
    Number max = sink;
    for (std::size_t j = 0; j < biased.size(); ++j) {
      if (!exact_.seen[j]) continue;
      const auto key = static_cast<std::int64_t>(j);
      const Scores::Stages stages = scores.score(head, key, exact_.bias(j), 1);
      biased[j] = stages.biased;
      row.slopes[j] = scores.slope(stages.capped);
      if (!(biased[j] <= max)) max = biased[j];
    }
    const Number lse = a_.base2 ? steps.round(saved_lse * scores.log2e()) : saved_lse;
    if (has_sink) row.sink = from_lse(sink, lse, steps);
    if (a_.kept_weights) {
      row.keys = weights_of(biased, sink, max, false, steps);  // that statement is of the result alone
    } else {
      for (std::size_t j = 0; j < biased.size(); ++j) {
        if (exact_.seen[j]) row.keys[j] = from_lse(biased[j], lse, steps);
      }
    }
    return row;
  }

  const Call p_;
  const Emulated e_;
  const Arithmetic a_;
  Inputs inputs_{};
  Row exact_;
  std::vector<Key> keys_;
  std::vector<Number> sums_, terms_;
  Walk walk_ = Walk::forwards;
  ValueScales value_scales_ = ValueScales::of_values;
  std::vector<Number> scales_of_values_;
  GroupSteps value_steps_;
  Number value_scale_ = 1;  ///< multiplied in at last
  support::HostResults<double> results_;
};

}  // namespace

std::optional<Refusal> EmulatorBackend::refuse(const Call& call) const {
  if (narrower(emulated_.does.accumulator, accumulator_of(call.dtype))) return Refusal{"sums in f32 alone"};
  if (call.prepares_operands() || call.scales != Scales::none || call.unscaled_cap || call.dynamic || call.append)
    return Refusal{"operands and launches of servers"};
  if (call.wants(Output::max) || call.wants(Output::sum)) return Refusal{"maxima and sums"};
  return refuse_other_operators(call);
}

std::unique_ptr<Plan> EmulatorBackend::prepare(const Call& call) {
  return std::make_unique<EmulatorPlan>(call, emulated_);
}

std::string text_of(const Arithmetic& arithmetic) { return nlohmann::json(arithmetic).dump(); }

}  // namespace attest::emulator
