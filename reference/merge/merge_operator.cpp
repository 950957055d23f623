#include "reference/merge/merge_operator.h"

#include <cmath>

#include "reference/arithmetic/rounding.h"
#include "reference/call/tensor_table.h"
#include "reference/merge/part_merge.h"

namespace attest {
namespace {

class MergeHead : public HeadReference {
 public:
  MergeHead(const Call& p, const Inputs& inputs, std::int64_t b, std::int64_t h, const std::vector<Producer>& producers)
      : call_(p), inputs_(inputs), b_(b), h_(h), producers_(producers), parts_(static_cast<std::size_t>(p.parts)) {
    for (PartOfRow& part : parts_) part.out.resize(static_cast<std::size_t>(p.value_dim));
  }

  void attend(std::int64_t i, ResultValues& row) override {
    const ConstTensor &o = inputs_.part_o(), &lse = inputs_.part_lse();
    for (std::size_t x = 0; x < parts_.size(); ++x) {
      const std::int64_t at = static_cast<std::int64_t>(x) * call_.batch + b_;
      parts_[x].lse = load(lse.data, lse.dtype, lse.offset(at, h_, i, 0));
      for (std::size_t c = 0; c < parts_[x].out.size(); ++c)
        parts_[x].out[c] = load(o.data, o.dtype, o.offset(at, h_, i, static_cast<std::int64_t>(c)));
    }
    merged_ = merge_parts(parts_, call_.base2);
    row.of(TensorId::out) = merged_.out;
    row.of(TensorId::lse) = {merged_.lse};
  }

  void bound(std::size_t n, ResultValues& bound) override {
    const Producer& producer = producers_[n];
    const auto stored = [&](TensorId result, double value, double error) {
      if (!std::isfinite(value) || merged_.lse == -kInfinity) return error;
      return Storing(producer.arithmetic.of(result), producer.type_of(call_, result)).bound(std::fabs(value), error);
    };
    MergedRow errors = bound_merge(parts_, merged_, producer.arithmetic.of(TensorId::out), call_.base2);
    for (std::size_t c = 0; c < errors.out.size(); ++c)
      errors.out[c] = stored(TensorId::out, merged_.out[c], errors.out[c]);
    bound.of(TensorId::out) = std::move(errors.out);
    errors = bound_merge(parts_, merged_, producer.arithmetic.of(TensorId::lse), call_.base2);
    bound.of(TensorId::lse) = {stored(TensorId::lse, merged_.lse, errors.lse)};
  }

 private:
  const Call& call_;
  const Inputs& inputs_;
  std::int64_t b_, h_;
  std::vector<Producer> producers_;
  std::vector<PartOfRow> parts_;
  MergedRow merged_;
};

class MergeOperator : public Operator {
 public:
  std::unique_ptr<HeadReference> head(const Call& p, const Inputs& inputs, std::int64_t b, std::int64_t h,
                                      const std::vector<Producer>& producers) const override {
    return std::make_unique<MergeHead>(p, inputs, b, h, producers);
  }
  double row_operations(const Call& p) const override {
    return static_cast<double>(p.parts) * static_cast<double>(p.value_dim + 16);  // an exponential is some of them
  }
  double useful_operations(const Call& p, const Inputs&) const override {
    const double rows = static_cast<double>(p.batch) * static_cast<double>(p.query_heads * p.query_length);
    return 2 * rows * static_cast<double>(p.parts) * static_cast<double>(p.value_dim);
  }
};

}  // namespace

const Operator& merge_operator() {
  static const MergeOperator merge;
  return merge;
}

}  // namespace attest
