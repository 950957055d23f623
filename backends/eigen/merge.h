// The merge of partial results with Eigen: rows in chunks, which threads take in turn.
//
// Each part's row is read once and added where it lies, where it is of the accumulator's type and dense; so this runs
// at the memory's bandwidth.
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "backends/backend.h"
#include "backends/support/host_results.h"
#include "backends/support/host_threads.h"

namespace attest {

template <class Real>
class EigenMergePlan : public Plan {
 public:
  EigenMergePlan(const Call& problem, int threads)
      : p_(problem),
        rows_(problem.batch * problem.query_heads * problem.query_length),
        chunks_((rows_ + kChunk - 1) / kChunk),
        threads_(threads, chunks_, static_cast<double>(rows_ * problem.parts) * static_cast<double>(problem.value_dim)),
        workers_(static_cast<std::size_t>(threads_.workers()), Worker{Row(problem.value_dim), Row(problem.parts)}),
        results_(problem) {}

  void upload(const Inputs& inputs) override { inputs_ = inputs; }

  void run() override {
    threads_.each(chunks_, [&](std::int64_t chunk, std::size_t worker) {
      const std::int64_t end = std::min(rows_, (chunk + 1) * kChunk);
      for (std::int64_t row = chunk * kChunk; row < end; ++row) merge(row, workers_[worker]);
    });
  }

  void download(const Outputs& outputs) override { results_.download(inputs_, outputs); }

  std::size_t workspace_bytes() const override {
    return workers_.size() * static_cast<std::size_t>(p_.value_dim + p_.parts) * sizeof(Real);
  }

 private:
  using Row = Eigen::Array<Real, 1, Eigen::Dynamic>;
  static constexpr std::int64_t kChunk = 64;
  static constexpr Real kEmpty = -std::numeric_limits<Real>::infinity();

  struct Worker {
    Row part, weights;
  };

  void merge(std::int64_t row, Worker& w) {
    const std::int64_t i = row % p_.query_length, h = row / p_.query_length % p_.query_heads;
    const std::int64_t b = row / p_.query_length / p_.query_heads;
    Eigen::Map<Row> out(results_.out_row(static_cast<std::size_t>(row)), p_.value_dim);
    Real& lse = results_.lse[static_cast<std::size_t>(row)];
    out.setZero();
    lse = kEmpty;
    Real max = kEmpty;
    bool any = false;
    for (std::int64_t x = 0; x < p_.parts; ++x) {
      Real& one = w.weights[x];
      support::read_row(inputs_.part_lse(), x * p_.batch + b, h, i, &one);
      // NaN stays the maximum: it makes the row NaN.
      if (!any || one > max || one != one) max = one;
      any = any || one != kEmpty;
    }
    if (!any) return;
    Real sum = 0;
    for (std::int64_t x = 0; x < p_.parts; ++x) {
      if (w.weights[x] == kEmpty) continue;  // its row is not read
      const Real weight = p_.base2 ? std::exp2(w.weights[x] - max) : std::exp(w.weights[x] - max);
      sum += weight;
      add(x * p_.batch + b, h, i, weight, out, w.part);
    }
    out /= sum;
    lse = max + (p_.base2 ? std::log2(sum) : std::log(sum));
  }

  void add(std::int64_t at, std::int64_t h, std::int64_t i, Real weight, Eigen::Map<Row>& out, Row& part) const {
    const ConstTensor& from = inputs_.part_o();
    constexpr DType own = std::is_same_v<Real, double> ? DType::f64 : DType::f32;
    if (from.dtype == own && from.strides[3] == 1) {
      out +=
          weight * Eigen::Map<const Row>(static_cast<const Real*>(from.data) + from.offset(at, h, i, 0), p_.value_dim);
      return;
    }
    support::read_row(from, at, h, i, part.data());
    out += weight * part;
  }

  const Call p_;
  std::int64_t rows_, chunks_;
  support::HostThreads threads_;
  std::vector<Worker> workers_;
  Inputs inputs_{};
  support::HostResults<Real> results_;
};

}  // namespace attest
