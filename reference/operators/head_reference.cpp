#include "reference/operators/head_reference.h"

#include <cmath>

#include "reference/arithmetic/rounding.h"
#include "reference/bounds/error_deviation.h"
#include "reference/linear/linear_attention.h"

namespace attest {
namespace {

class SoftmaxHead : public HeadReference {
 public:
  SoftmaxHead(const Call& p, const Inputs& inputs, std::int64_t b, std::int64_t h,
              const std::vector<Producer>& producers)
      : head_(p, inputs, b, h), producers_(producers) {
    for (const Producer& producer : producers) {
      constants_.emplace_back(p, producer);
      std::vector<OwnConstants>& own = own_.emplace_back();
      for (const ResultArithmetic& one : producer.arithmetic.of_results)
        own.push_back({one.result, BoundConstants(p, {one.arithmetic, producer.stored})});
    }
  }

  void attend(std::int64_t i, Row& row) override {
    i_ = i;
    head_.attend(i, row);
    if (!producers_.empty()) sums_ = row_sums(head_, row, i);
  }
  void bound(std::size_t n, const Row& row, RowBound& bound) override {
    bound_row(head_, row, sums_, i_, constants_[n], bound);
    for (const OwnConstants& own : own_[n]) {
      RowBound other;
      bound_row(head_, row, sums_, i_, own.constants, other);
      take(own.result, other, bound);
    }
  }
  std::vector<std::vector<double>> deviations(const Row& row, std::span<const std::int64_t> columns) override {
    const RowDeviation deviation(head_, row, i_, columns);
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

  static void take(TensorId result, RowBound& from, RowBound& to) {
    switch (result) {
      case TensorId::out:
        to.output.swap(from.output);
        to.terms = from.terms;
        break;
      case TensorId::lse: to.lse = from.lse; break;
      case TensorId::raw: to.raw.swap(from.raw); break;
      case TensorId::capped: to.capped.swap(from.capped); break;
      case TensorId::biased: to.biased.swap(from.biased); break;
      case TensorId::weights: to.weights.swap(from.weights); break;
      default: break;  // copied, bit for bit
    }
  }

  Head head_;
  std::int64_t i_ = 0;
  RowSums sums_;
  std::vector<Producer> producers_;
  std::vector<BoundConstants> constants_;       ///< one for each producer
  std::vector<std::vector<OwnConstants>> own_;  ///< likewise
};

class LinearHead : public HeadReference {
 public:
  LinearHead(const Call& p, const Inputs& inputs, std::int64_t b, std::int64_t h,
             const std::vector<Producer>& producers)
      : call_(p),
        state_(p, inputs, b, h / p.heads_per_group(), arithmetics_of(producers, TensorId::out)),
        h_(h),
        producers_(producers) {}

  void attend(std::int64_t i, Row& row) override {
    while (state_.tokens() <= i) state_.step();
    i_ = i;
    state_.read(h_, i, row.output);
    row.visible_count = i + 1;
  }
  void bound(std::size_t n, const Row& row, RowBound& bound) override {
    state_.bound_read(n, h_, i_, bound.output);
    const Storing storing(producers_[n].arithmetic.of(TensorId::out), producers_[n].type_of(call_, TensorId::out));
    for (std::size_t m = 0; m < row.output.size(); ++m) {
      bound.output[m] = storing.bound(std::fabs(row.output[m]), bound.output[m]);
    }
  }
  std::vector<std::vector<double>> deviations(const Row&, std::span<const std::int64_t> columns) override {
    return std::vector(producers_.size(), std::vector<double>(columns.size(), kInfinity));
  }

 private:
  const Call& call_;
  LinearState state_;
  std::int64_t h_, i_ = 0;
  std::vector<Producer> producers_;
};

}  // namespace

std::unique_ptr<HeadReference> make_head_reference(const Call& p, const Inputs& inputs, std::int64_t b, std::int64_t h,
                                                   const std::vector<Producer>& producers) {
  if (p.op == Op::attention) return std::make_unique<SoftmaxHead>(p, inputs, b, h, producers);
  return std::make_unique<LinearHead>(p, inputs, b, h, producers);
}

std::vector<Row> reference_rows(const Call& p, const Inputs& inputs) {
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

}  // namespace attest
