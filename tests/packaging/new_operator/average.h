// The operator that tests/packaging/new_options.sh adds: o_i = scale / Lk * sum over j of <q_i, k_j> v_j.
#pragma once

#include <vector>

#include "backends/backend.h"

namespace attest::example {

template <class Real>
class AveragePlan : public Plan {
 public:
  explicit AveragePlan(const Call& call) : p_(call) {}
  void upload(const Inputs& inputs) override { inputs_ = inputs; }
  void run() override {
    out_.clear();
    each_index({p_.batch, p_.query_heads, p_.query_length, p_.value_dim},
               [&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t c) {
                 const std::int64_t g = h / p_.heads_per_group();
                 Real sum = 0;
                 for (std::int64_t j = 0; j < p_.key_length; ++j) {
                   Real product = 0;
                   for (std::int64_t d = 0; d < p_.key_dim; ++d)
                     product += at(inputs_.q(), b, h, i, d) * at(inputs_.k(), b, g, j, d);
                   sum += product * static_cast<Real>(p_.scale_value()) / static_cast<Real>(p_.key_length) *
                          at(inputs_.v(), b, g, j, c);
                 }
                 out_.push_back(sum);
               });
  }
  void download(const Outputs& outputs) override {
    if (!outputs.has(TensorId::out)) return;
    std::size_t n = 0;
    const MutableTensor& to = outputs.out();
    each_index(to.shape, [&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t c) {
      store(to.data, to.dtype, to.offset(b, h, i, c), static_cast<double>(out_[n++]));
    });
  }

 private:
  static Real at(const ConstTensor& t, std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
    return static_cast<Real>(load(t.data, t.dtype, t.offset(b, h, l, d)));
  }
  const Call p_;
  Inputs inputs_{};
  std::vector<Real> out_;
};

}  // namespace attest::example
