// Compares one result with its expectation, element by element: first the class (number, NaN, infinity), then the
// bound.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/comparison/accuracy.h"
#include "harness/comparison/cause.h"
#include "harness/comparison/expectation.h"
#include "harness/comparison/guarded_outputs.h"
#include "harness/comparison/signed_bias.h"
#include "harness/comparison/worst_element.h"
#include "reference/call/tensor_place.h"
#include "reference/softmax/bounds/error_deviation.h"

namespace attest {

/// The error of one element in units of its bound; infinity where the classes differ. Equal infinities agree, an
/// expected NaN accepts NaN or infinity, an expected finite value accepts neither. An infinite bound gives 0: the
/// arithmetic may overflow, and the element proves nothing. Data that are not finite have a bound of 0
/// (reference/softmax/non_finite.h).
inline double error_in_bounds(double got, double expected, double bound) {
  // The arithmetic may overflow here: nothing can be said, and `inconclusive` counts it. Where the data themselves are
  // not finite the class decides, and the bound is 0.
  if (bound == kInfinity) return 0;
  if (std::isnan(expected)) return std::isfinite(got) ? kInfinity : 0;
  if (std::isinf(expected)) return got == expected ? 0 : kInfinity;
  if (!std::isfinite(got)) return kInfinity;
  const double error = std::fabs(got - expected);
  if (error == 0) return 0;
  return bound > 0 ? error / bound : kInfinity;
}

/// The summary of the elements that were compared so far.
class Comparison {
 public:
  /// The number of a result among those compared so far; one of another name is added, in which errors have the units
  /// of this type.
  std::size_t result(std::string_view output, DType type = DType::f64);
  /// One element of a result; it fails unless error_in_bounds is at most 1.
  void element(std::size_t result, const Index4& index, double got, double expected, double bound) {
    ++compared_;
    auto& [output, sums, accuracy] = results_[result];
    sums.add(got, expected);
    accuracy.add(got, expected, bound);
    const double measured = error_in_bounds(got, expected, bound);
    if (!(measured <= 1)) count_failure(got, expected);
    if (worst_ && !(measured > worst_ratio_)) return;
    worst_ratio_ = measured;
    worst_ = WorstElement{output, index, got, expected, bound};
  }
  void element(std::string_view output, const Index4& index, double got, double expected, double bound) {
    element(result(output), index, got, expected, bound);
  }

  bool failed() const { return failures_ > 0; }
  /// Nearly all elements had a bound that is infinite or as large as the value, and so proved nothing.
  bool inconclusive() const;
  double error_over_bound() const { return worst_ratio_; }
  const std::optional<WorstElement>& worst() const { return worst_; }
  std::int64_t compared() const { return compared_; }
  /// Of each result, in the order in which they came.
  std::vector<SignedBias> biases() const;
  std::vector<Accuracy> accuracies() const;
  /// "3 of 64 elements are wrong; the worst: o[0,0,3,2] = 0.5, expected 0.25 +- 1e-7".
  std::string describe() const;
  /// The cause of the failure, with the output's name.
  FailureCause cause() const;

 private:
  void count_failure(double got, double expected) {
    ++failures_;
    if (std::isfinite(expected) && !std::isfinite(got)) ++not_finite_;
  }

  std::int64_t compared_ = 0, failures_ = 0, not_finite_ = 0;
  double worst_ratio_ = 0;
  std::optional<WorstElement> worst_;
  struct Result {
    std::string output;
    ErrorSums sums;
    AccuracyCounter accuracy;
  };
  std::vector<Result> results_;
};

/// The tensors that the call asks for: o, which every call writes, only where it does.
std::vector<TensorId> results_of(const Call& call);

/// Calls visit(row of the output, index, got, expected, bound) for every element that the call asks for and the
/// expectation covers: the results of query rows row by row, then the others.
template <class Visit>
void each_result(const Call& p, const Expectation& e, const Bounds& bounds, const GuardedOutputs& outputs,
                 const Visit& visit) {
  std::vector<TensorId> of_rows, of_other;
  for (const TensorId id : results_of(p)) {
    (index_space(id) == IndexSpace::query_rows ? of_rows : of_other).push_back(id);
  }
  const auto sum = [&](TensorId id, std::size_t at) { return bounds.of(id)[at] + e.own.of(id)[at]; };
  std::vector<double> got(static_cast<std::size_t>(std::max({p.value_dim, p.key_dim, p.key_length, std::int64_t{1}})));
  for (std::size_t r = 0; r < e.rows.size(); ++r) {
    const auto [b, h, i] = e.rows[r];
    for (const TensorId id : of_rows) {
      const auto columns = static_cast<std::size_t>(seen_shape(p, id)[3]);
      outputs.read_row(id, b, h, i, std::span(got).first(columns));
      for (std::size_t c = 0; c < columns; ++c) {
        const std::size_t at = r * columns + c;
        visit(row_of(id), Index4{b, h, i, static_cast<std::int64_t>(c)}, got[c], e.of(id)[at], sum(id, at));
      }
    }
  }
  for (const TensorId id : of_other) {
    std::size_t at = 0;
    const bool of_keys = index_space(id) == IndexSpace::key_rows;
    each_index(seen_shape(p, id), [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
      const std::size_t n = at++;
      // Key heads that are not in the sample, and keys that packed sequences don't have.
      if (of_keys && !e.key_heads.empty() && !e.key_heads[static_cast<std::size_t>(b * p.key_heads + h)]) return;
      if (of_keys && is_packed(p, id) && l >= p.key_count(b)) return;
      visit(row_of(id), Index4{b, h, l, d}, outputs.at(id, b, h, l, d), e.of(id)[n], sum(id, n));
    });
  }
}

/// The largest error over bound of o and lse in one query row, as far as the call asks for them. `bound` and `own`, the
/// reference's, add up.
double error_in_row(const Call& call, const GuardedOutputs& outputs, const RowIndex& at, const ResultValues& row,
                    const ResultValues& own, const ResultValues& bound);

/// The sampled element that lies furthest off in standard deviations; nothing where none is claimed.
struct Deviation {
  double ratio = 0;  ///< error over standard deviation
  WorstElement element;
};
std::optional<Deviation> largest_deviation(const Call& call, const Expectation& expectation, std::size_t producer,
                                           const GuardedOutputs& outputs);

/// Every output that the call asks for, against `expected_of(id, column, value)` where the expectation has `value`.
template <class Expected>
Comparison compare_outputs(const Call& call, const Expectation& expectation, const Bounds& bounds,
                           const GuardedOutputs& outputs, const Expected& expected_of) {
  Comparison comparison;
  std::array<std::optional<std::size_t>, kTensorCount> results;  // as their elements come
  each_result(call, expectation, bounds, outputs,
              [&](const TensorRow& output, const Index4& index, double got, double expected, double bound) {
                auto& result = results[static_cast<std::size_t>(output.id)];
                if (!result) result = comparison.result(output.name, type_of(call, output.id));
                comparison.element(*result, index, got, expected_of(output.id, index[3], expected), bound);
              });
  return comparison;
}

/// Every output that the call asks for.
Comparison compare_outputs(const Call& call, const Expectation& expectation, const Bounds& bounds,
                           const GuardedOutputs& outputs);

}  // namespace attest
