#include "reference/linear/linear_operator.h"

#include <cmath>

#include "reference/arithmetic/rounding.h"
#include "reference/linear/linear_attention.h"

namespace attest {
namespace {

/// Each bound with that of storing its value added.
std::vector<double> stored_bounds(const Call& call, const Producer& producer, TensorId result,
                                  const std::vector<double>& values, std::vector<double> bounds) {
  const Storing storing(producer.arithmetic.of(result), producer.type_of(call, result));
  for (std::size_t n = 0; n < bounds.size(); ++n) bounds[n] = storing.bound(std::fabs(values[n]), bounds[n]);
  return bounds;
}

class LinearHead : public HeadReference {
 public:
  LinearHead(const Call& p, const Inputs& inputs, std::int64_t b, std::int64_t h,
             const std::vector<Producer>& producers)
      : call_(p),
        state_(p, inputs, b, h / p.heads_per_group(), arithmetics_of(producers, TensorId::out)),
        h_(h),
        producers_(producers) {}

  void attend(std::int64_t i, ResultValues& row) override {
    while (state_.tokens() <= i) state_.step();
    i_ = i;
    state_.read(h_, i, output_);
    row.of(TensorId::out) = output_;
  }
  void bound(std::size_t n, ResultValues& bound) override {
    std::vector<double> errors;
    state_.bound_read(n, h_, i_, errors);
    bound.of(TensorId::out) = stored_bounds(call_, producers_[n], TensorId::out, output_, std::move(errors));
  }

 private:
  const Call& call_;
  LinearState state_;
  std::int64_t h_, i_ = 0;
  std::vector<double> output_;
  std::vector<Producer> producers_;
};

class LinearOperator : public Operator {
 public:
  std::unique_ptr<HeadReference> head(const Call& p, const Inputs& inputs, std::int64_t b, std::int64_t h,
                                      const std::vector<Producer>& producers) const override {
    return std::make_unique<LinearHead>(p, inputs, b, h, producers);
  }
  /// The last state of each key head.
  WholeResults whole(const Call& p, const Inputs& inputs, const std::vector<TensorId>& results,
                     const std::vector<Producer>& producers, const std::vector<char>&) const override {
    WholeResults all{{}, std::vector<ResultValues>(producers.size())};
    for (const TensorId id : results) add_states(p, inputs, id, producers, all);
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
        while (state.tokens() < p.query_length) state.step();
        for (std::size_t n = 0; n < producers.size(); ++n)
          append(to.bounds[n].of(result), stored_bounds(p, producers[n], result, state.values(), state.bounds(n)));
        append(to.values.of(result), state.values());
      }
    }
  }
  double row_operations(const Call& p) const override {
    return 4 * static_cast<double>(p.key_dim) * static_cast<double>(p.value_dim);
  }
  double useful_operations(const Call& p, const Inputs&) const override {
    const double state = static_cast<double>(p.key_dim) * static_cast<double>(p.value_dim);
    const double tokens = static_cast<double>(p.batch) * static_cast<double>(p.query_length);
    const double written = 2 + (p.has_decay() ? 1 : 0) + (p.has_beta() ? 2 : 0);
    return tokens * state * (2 * static_cast<double>(p.query_heads) + written * static_cast<double>(p.key_heads));
  }
  /// The delta rules want keys of about unit length.
  double key_divisor(const Call& p) const override {
    return p.has_beta() ? std::sqrt(static_cast<double>(p.key_dim)) : 1;
  }
};

}  // namespace

const Operator& linear_operator() {
  static const LinearOperator linear;
  return linear;
}

}  // namespace attest
