#include "reference/average/average_operator.h"

#include <algorithm>
#include <cmath>

#include "reference/arithmetic/rounding.h"

namespace attest {
namespace {

double element(const ConstTensor& t, std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
  return load(t.data, t.dtype, t.offset(b, h, l, d));
}

class AverageHead : public HeadReference {
 public:
  AverageHead(const Call& p, const Inputs& inputs, std::int64_t b, std::int64_t h,
              const std::vector<Producer>& producers)
      : p_(p), inputs_(inputs), b_(b), h_(h), producers_(producers) {}

  void attend(std::int64_t i, ResultValues& row) override {
    output_.assign(static_cast<std::size_t>(p_.value_dim), 0);
    sizes_ = output_;
    const std::int64_t g = h_ / p_.heads_per_group();
    const double factor = p_.key_length > 0 ? p_.scale_value() / static_cast<double>(p_.key_length) : 0;
    values_ = products_ = 0;
    for (std::int64_t j = 0; j < p_.key_length; ++j) {
      double product = 0, size = 0;
      for (std::int64_t d = 0; d < p_.key_dim; ++d) {
        const double term = element(inputs_.q(), b_, h_, i, d) * element(inputs_.k(), b_, g, j, d);
        product += term;
        size += std::fabs(term);
      }
      products_ += size;
      for (std::int64_t c = 0; c < p_.value_dim; ++c) {
        const double v = element(inputs_.v(), b_, g, j, c);
        output_[static_cast<std::size_t>(c)] += factor * product * v;
        sizes_[static_cast<std::size_t>(c)] += std::fabs(factor) * size * std::fabs(v);
        values_ += std::fabs(v);
      }
    }
    row.of(TensorId::out) = output_;
  }
  void bound(std::size_t n, ResultValues& bound) override {
    const Arithmetic& a = producers_[n].arithmetic;
    const double roundings = static_cast<double>(p_.key_dim + p_.key_length + 5) * unit_roundoff(a.accumulator);
    const double scale = std::max(1.0, std::fabs(p_.scale_value())), keys = static_cast<double>(p_.key_length);
    const double lost = underflow_unit(a.accumulator, a.flush_to_zero) * scale * (keys + 3) *
                        (static_cast<double>(p_.key_dim) + 3 + values_ + products_);
    std::vector<double>& list = bound.of(TensorId::out);
    list.assign(output_.size(), kInfinity);
    for (std::size_t c = 0; c < list.size(); ++c) {
      const bool in_range = sizes_[c] * (keys + 1) + products_ * scale + values_ <= largest_of(a.accumulator) / 4;
      if (!in_range) continue;
      list[c] = Storing(a, producers_[n].type_of(p_, TensorId::out))
                    .bound(std::fabs(output_[c]), 1.01 * roundings * sizes_[c] + lost * (1 + values_));
    }
  }

 private:
  const Call& p_;
  const Inputs& inputs_;
  std::int64_t b_, h_;
  std::vector<Producer> producers_;
  std::vector<double> output_, sizes_;
  double values_ = 0, products_ = 0;
};

class AverageOperator : public Operator {
 public:
  std::unique_ptr<HeadReference> head(const Call& p, const Inputs& inputs, std::int64_t b, std::int64_t h,
                                      const std::vector<Producer>& producers) const override {
    return std::make_unique<AverageHead>(p, inputs, b, h, producers);
  }
  double row_operations(const Call& p) const override {
    return static_cast<double>(p.key_length + 1) * static_cast<double>(p.key_dim + p.value_dim);
  }
  double useful_operations(const Call& p, const Inputs&) const override { return 2 * multiply_adds(p); }
};

}  // namespace

const Operator& average_operator() {
  static const AverageOperator average;
  return average;
}

}  // namespace attest
