#include "reference/softmax/bounds/gradient_terms.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "reference/call/tensor_table.h"
#include "reference/softmax/bounds/gradient_row.h"

namespace attest {
namespace {

/// Which pairs an element is a sum over.
class Pairs {
 public:
  Pairs(const Call& p, TensorId result, const Index4& index) : p_(p), result_(result), at_(index) {
    if (result == TensorId::dmask) shared_ = broadcast_axes(p, result);
  }
  bool of_head(std::int64_t b, std::int64_t h) const {
    if (result_ == TensorId::dmask) return (shared_[0] || b == at_[0]) && (shared_[1] || h == at_[1]);
    return b == at_[0] && (result_ == TensorId::dq ? h : h / p_.heads_per_group()) == at_[1];
  }
  bool of_row(std::int64_t i) const {
    if (result_ == TensorId::dmask) return shared_[2] || i == at_[2];
    return result_ != TensorId::dq || i == at_[2];
  }
  bool of_key(std::int64_t j) const {
    if (result_ == TensorId::dmask) return shared_[3] || j == at_[3];
    return result_ == TensorId::dq || j == at_[2];
  }

 private:
  const Call& p_;
  TensorId result_;
  Index4 at_;
  std::array<bool, 4> shared_{};
};

class Element {
 public:
  Element(const Call& p, const Inputs& inputs, const Producer& producer, TensorId result, const Index4& index)
      : p_(p),
        inputs_(inputs),
        producer_(producer),
        result_(result),
        column_(static_cast<std::size_t>(index[3])),
        scale_(result == TensorId::dq || result == TensorId::dk ? p.scale_value() : 1),
        pairs_(p, result, index),
        gradient_(p, inputs, {producer}) {}

  GradientTerms terms() {
    for (std::int64_t b = 0; b < p_.batch; ++b) {
      for (std::int64_t h = 0; h < p_.query_heads; ++h) {
        if (pairs_.of_head(b, h)) add_head(b, h);
      }
    }
    const BoundConstants& c = gradient_.constants(0, result_);
    const Storing storing(c.arithmetic, producer_.type_of(p_, result_));
    const double by_scale = c.scale_roundings + 1;
    const double roundings = result_ == TensorId::dq ? by_scale + c.blocks : result_ == TensorId::dk ? by_scale : 3;
    bound_gradient_sum(sum_, value_ * scale_, scale_, roundings, c, storing, &terms_.sums);
    const auto share = [](const GradientPair& pair) { return std::fabs(pair.error * pair.y); };
    std::ranges::stable_sort(terms_.pairs, std::ranges::greater(), share);
    return std::move(terms_);
  }

 private:
  void add_head(std::int64_t b, std::int64_t h) {
    const Head head(p_, inputs_, b, h);
    Row row;
    double before = value_;
    for (std::int64_t i = 0; i < p_.stored_queries(b); ++i) {
      if (!pairs_.of_row(i)) continue;
      head.attend(i, row);
      gradient_.set(head, row, i);
      const RowGradientErrors& errors =
          gradient_.errors(0, result_, result_ == TensorId::dmask ? TermsOf::scores : TermsOf::raw);
      for (std::size_t j = 0; j < row.seen.size(); ++j) {
        if (row.seen[j] && pairs_.of_key(static_cast<std::int64_t>(j))) add(head, row, i, j, errors);
      }
    }
    if (result_ != TensorId::dk && result_ != TensorId::dv) return;
    sum_.kept_apart += std::fabs(value_ - before);
    ++sum_.parts;
  }

  void add(const Head& head, const Row& row, std::int64_t i, std::size_t j, const RowGradientErrors& errors) {
    const RowGradient& g = gradient_.gradient();
    const auto key = static_cast<std::int64_t>(j);
    GradientPair pair{head.batch(), head.head(), i, key, row.weights[j], g.products[j], g.scores[j], 0, 0, 1};
    switch (result_) {
      case TensorId::dv:
        pair.x = row.weights[j] * (row.factors.empty() ? 1 : row.factors[j]);
        pair.error = errors.weights[j];
        pair.y = gradient_.loss().out[column_];
        break;
      case TensorId::dmask:
        pair.x = g.scores[j];
        pair.error = errors.scores[j];
        break;
      default:
        pair.x = g.raw[j];
        pair.error = errors.raw[j];
        pair.y = result_ == TensorId::dq ? head.key_row(key)[column_] : head.query_row(i)[column_];
    }
    value_ += pair.x * pair.y;
    sum_.add(pair.x, pair.error, pair.y);
    const double size = std::fabs(scale_ * pair.y);
    if (result_ == TensorId::dv) {
      terms_.scores.weights += size * pair.error;
    } else {
      terms_.scores.add(errors.terms[j], size);
    }
    terms_.pairs.push_back(pair);
  }

  const Call& p_;
  const Inputs& inputs_;
  const Producer& producer_;
  TensorId result_;
  std::size_t column_;
  double scale_, value_ = 0;
  Pairs pairs_;
  GradientRow gradient_;
  GradientSum sum_;
  GradientTerms terms_;
};

}  // namespace

GradientTerms terms_of_gradient(const Call& p, const Inputs& inputs, const Producer& producer, TensorId result,
                                const Index4& index) {
  return Element(p, inputs, producer, result, index).terms();
}

}  // namespace attest
