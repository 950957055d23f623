// Rows of tasks that were cut by keys: what each part summed, until all of a row's are put together.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "backends/simd/tasks.h"

namespace attest::simd {

template <class Real>
class PartialRows {
 public:
  /// A row's sum of weights times values, the maximum that the weights are relative to, and their sum.
  struct Row {
    Real* out = nullptr;  ///< value_dim numbers
    Real maximum = 0, sum = 0;
  };

  /// Room for `rows` of them, over all parts of all tasks.
  PartialRows(std::int64_t rows, std::int64_t value_dim)
      : value_dim_(value_dim), numbers_(static_cast<std::size_t>(rows * stride())) {}

  void keep(const Task& task, std::int64_t r, const Row& row) {
    Real* to = at(task, r);
    std::copy_n(row.out, value_dim_, to);
    to[value_dim_] = row.maximum;
    to[value_dim_ + 1] = row.sum;
  }

  /// Row r of all parts of a task, of which this is the first, whose place it takes.
  Row put_together(const Task& task, std::int64_t r) {
    Row whole = row_of(at(task, r));
    for (std::int64_t part = 1; part < task.parts; ++part) {
      const Row next = row_of(whole.out + part * task.rows * stride());
      const Real most = std::max(whole.maximum, next.maximum);
      const Real keep = std::exp(whole.maximum - most), add = std::exp(next.maximum - most);
      for (std::int64_t c = 0; c < value_dim_; ++c) whole.out[c] = whole.out[c] * keep + next.out[c] * add;
      whole.sum = whole.sum * keep + next.sum * add;
      whole.maximum = most;
    }
    return whole;
  }

  std::size_t bytes() const { return numbers_.size() * sizeof(Real); }

 private:
  std::int64_t stride() const { return value_dim_ + 2; }
  Real* at(const Task& task, std::int64_t r) { return numbers_.data() + (task.partial + r) * stride(); }
  Row row_of(Real* from) const { return {from, from[value_dim_], from[value_dim_ + 1]}; }

  std::int64_t value_dim_;
  std::vector<Real> numbers_;
};

}  // namespace attest::simd
