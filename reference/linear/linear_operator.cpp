#include "reference/linear/linear_operator.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "reference/call/tensor_table.h"
#include "reference/linear/linear_attention.h"
#include "reference/linear/linear_gradient_sums.h"

namespace attest {
namespace {

class LinearHead : public HeadReference {
 public:
  LinearHead(const Call& p, const Inputs& inputs, std::int64_t b, std::int64_t h,
             const std::vector<Producer>& producers)
      : call_(p),
        state_(p, inputs, b, h / p.heads_per_group(), arithmetics_of_rows(producers)),
        b_(b),
        h_(h),
        producers_(producers) {}

  void attend(std::int64_t i, ResultValues& row) override {
    const bool is_there = i < call_.query_count(b_);
    while (is_there && state_.tokens() <= i) state_.step();
    i_ = i;
    if (!is_there) {
      output_.assign(static_cast<std::size_t>(call_.value_dim), 0);
      row.of(TensorId::out) = output_;
      return;
    }
    if (call_.runs_forward()) {
      state_.read(h_, i, output_);
      row.of(TensorId::out) = output_;
    }
    if (has_tensor(call_, TensorId::dq)) {
      state_.read_gradient(h_, i, gradient_);
      row.of(TensorId::dq) = gradient_;
    }
  }
  void bound(std::size_t n, ResultValues& bound) override {
    std::vector<double> errors;
    if (i_ >= call_.query_count(b_)) {
      bound.of(TensorId::out).assign(output_.size(), 0);
      return;
    }
    if (call_.runs_forward()) {
      state_.bound_read(n, h_, i_, errors);
      bound.of(TensorId::out) = stored_bounds(call_, producers_[n], TensorId::out, output_, errors);
    }
    if (has_tensor(call_, TensorId::dq)) {
      state_.bound_gradient(producers_.size() + n, h_, i_, errors);
      bound.of(TensorId::dq) = stored_bounds(call_, producers_[n], TensorId::dq, gradient_, errors);
    }
  }

 private:
  /// Of each producer that of o, then of each that of dq.
  std::vector<Arithmetic> arithmetics_of_rows(const std::vector<Producer>& producers) const {
    std::vector<Arithmetic> list = arithmetics_of(producers, TensorId::out);
    if (!has_tensor(call_, TensorId::dq)) return list;
    const std::vector<Arithmetic> of_gradient = arithmetics_of(producers, TensorId::dq);
    list.insert(list.end(), of_gradient.begin(), of_gradient.end());
    return list;
  }

  const Call& call_;
  LinearState state_;
  std::int64_t b_, h_, i_ = 0;
  std::vector<double> output_, gradient_;
  std::vector<Producer> producers_;
};

class LinearOperator : public Operator {
 public:
  std::unique_ptr<HeadReference> head(const Call& p, const Inputs& inputs, std::int64_t b, std::int64_t h,
                                      const std::vector<Producer>& producers) const override {
    return std::make_unique<LinearHead>(p, inputs, b, h, producers);
  }
  /// The last state of each key head, and gradients.
  WholeResults whole(const Call& p, const Inputs& inputs, const std::vector<TensorId>& results,
                     const std::vector<Producer>& producers, const std::vector<char>& of_key_heads) const override {
    std::vector<TensorId> gradients;
    std::ranges::copy_if(results, std::back_inserter(gradients), is_of_gradients);
    WholeResults all{{}, std::vector<ResultValues>(producers.size())};
    if (!gradients.empty()) all = linear_gradients(p, inputs, gradients, producers, of_key_heads);
    for (const TensorId id : results) {
      if (!is_of_gradients(id)) add_states(p, inputs, id, producers, all);
    }
    return all;
  }
  static void add_states(const Call& p, const Inputs& inputs, TensorId result, const std::vector<Producer>& producers,
                         WholeResults& to) {
    const auto append = [](std::vector<double>& list, const std::vector<double>& more) {
      list.insert(list.end(), more.begin(), more.end());
    };
    for (std::int64_t b = 0; b < p.batch; ++b) {
      for (std::int64_t h = 0; h < p.key_heads; ++h) {
        LinearState state(p, inputs, b, h, arithmetics_of(producers, result));
        while (state.tokens() < p.query_count(b)) state.step();
        for (std::size_t n = 0; n < producers.size(); ++n)
          append(to.bounds[n].of(result), stored_bounds(p, producers[n], result, state.values(), state.bounds(n)));
        append(to.values.of(result), state.values());
      }
    }
  }
  double row_operations(const Call& p) const override {
    const double passes = (p.runs_forward() ? 1 : 0) + (p.wants_gradients() ? 4 : 0);
    return 4 * passes * static_cast<double>(p.key_dim) * static_cast<double>(p.value_dim);
  }
  double useful_operations(const Call& p, const Inputs&) const override {
    const double state = static_cast<double>(p.key_dim) * static_cast<double>(p.value_dim);
    double tokens = 0;
    for (std::int64_t b = 0; b < p.batch; ++b) tokens += static_cast<double>(p.query_count(b));
    const double heads = static_cast<double>(p.query_heads), states = static_cast<double>(p.key_heads);
    const double written = 2 + (p.has_decay() ? 1 : 0) + (p.has_beta() ? 2 : 0);
    const double forward = 2 * heads + written * states;
    // The states once more; dq and what do gives to G; dw and dk, of a decay its product and sum, of beta two products.
    const double backward =
        written * states + 4 * heads + (4 + (p.has_decay() ? 3 : 0) + (p.has_beta() ? 4 : 0)) * states;
    return tokens * state * ((p.runs_forward() ? forward : 0) + (p.wants_gradients() ? backward : 0));
  }
  /// The delta rules want keys of about unit length, which a norm gives them.
  double key_divisor(const Call& p) const override {
    return p.has_beta() && !p.l2norm ? std::sqrt(static_cast<double>(p.key_dim)) : 1;
  }
};

}  // namespace

const Operator& linear_operator() {
  static const LinearOperator linear;
  return linear;
}

}  // namespace attest
