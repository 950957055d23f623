// The merge of partial results as plain loops: the largest logsumexp of a row, then the weights, then their mean.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "backends/backend.h"
#include "backends/support/host_results.h"

namespace attest::example {

template <class Real>
class MergePlan : public Plan {
 public:
  explicit MergePlan(const Call& problem)
      : p_(problem),
        part_(static_cast<std::size_t>(problem.value_dim)),
        lse_(static_cast<std::size_t>(problem.parts)),
        results_(problem) {}

  void upload(const Inputs& inputs) override { inputs_ = inputs; }

  void run() override {
    for (std::int64_t b = 0; b < p_.batch; ++b) {
      for (std::int64_t h = 0; h < p_.query_heads; ++h) {
        for (std::int64_t i = 0; i < p_.query_length; ++i) merge(b, h, i);
      }
    }
  }

  void download(const Outputs& outputs) override { results_.download(inputs_, outputs); }

  std::size_t workspace_bytes() const override { return (part_.size() + lse_.size()) * sizeof(Real); }

 private:
  void merge(std::int64_t b, std::int64_t h, std::int64_t i) {
    constexpr Real kEmpty = -std::numeric_limits<Real>::infinity();
    const std::size_t row = results_.row(b, h, i);
    Real* out = results_.out_row(row);
    std::fill_n(out, p_.value_dim, Real{0});
    results_.lse[row] = kEmpty;
    bool any = false;
    Real max = kEmpty;
    for (std::int64_t x = 0; x < p_.parts; ++x) {
      Real& lse = lse_[static_cast<std::size_t>(x)];
      support::read_row(inputs_.part_lse(), x * p_.batch + b, h, i, &lse);
      if (lse == kEmpty) continue;
      max = any ? std::max(max, lse) : lse;
      any = true;
    }
    if (!any) return;  // every part is empty: output 0, lse -inf
    Real sum = 0;
    for (std::int64_t x = 0; x < p_.parts; ++x) {
      const Real lse = lse_[static_cast<std::size_t>(x)];
      if (lse == kEmpty) continue;  // whatever its output holds
      const Real weight = p_.base2 ? std::exp2(lse - max) : std::exp(lse - max);
      sum += weight;
      support::read_row(inputs_.part_o(), x * p_.batch + b, h, i, part_.data());
      for (std::int64_t c = 0; c < p_.value_dim; ++c) out[c] += weight * part_[static_cast<std::size_t>(c)];
    }
    for (std::int64_t c = 0; c < p_.value_dim; ++c) out[c] /= sum;
    results_.lse[row] = max + (p_.base2 ? std::log2(sum) : std::log(sum));
  }

  const Call p_;
  Inputs inputs_{};
  std::vector<Real> part_, lse_;
  support::HostResults<Real> results_;
};

}  // namespace attest::example
