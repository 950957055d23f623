// Comparison of one result with its expectation, element by element. Class first, then the bound; nothing else.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/comparison/cause.h"
#include "harness/comparison/expectation.h"
#include "harness/comparison/guarded_outputs.h"
#include "harness/comparison/worst_element.h"
#include "reference/bounds/error_deviation.h"
#include "reference/operators/operator_tensors.h"

namespace attest {

/// How far one element is off, in units of its bound; infinity where the classes differ. Class first: equal infinities
/// agree, an expected NaN accepts NaN or infinity, an expected finite value accepts neither. Where the bound is
/// infinite nothing can be said, which is 0: the arithmetic may overflow. Data that are not finite have a bound of 0
/// (reference/softmax/non_finite.h).
inline double error_in_bounds(double got, double expected, double bound) {
  // The arithmetic may overflow here: nothing can be said, and `mistrusted` counts it. Where the data themselves are
  // not finite the class decides, and the bound is 0.
  if (bound == kInfinity) return 0;
  if (std::isnan(expected)) return std::isfinite(got) ? kInfinity : 0;
  if (std::isinf(expected)) return got == expected ? 0 : kInfinity;
  if (!std::isfinite(got)) return kInfinity;
  const double error = std::fabs(got - expected);
  if (error == 0) return 0;
  return bound > 0 ? error / bound : kInfinity;
}

/// What the elements compared so far add up to.
class Comparison {
 public:
  /// One element; it fails unless error_in_bounds is at most 1.
  void element(std::string_view output, const Index4& index, double got, double expected, double bound) {
    ++compared_;
    const double measured = error_in_bounds(got, expected, bound);
    if (!(measured <= 1)) count_failure(got, expected);
    if (bound == kInfinity || (std::isfinite(expected) && bound > 0 && !(bound < std::fabs(expected)))) ++vacuous_;
    if (worst_ && !(measured > worst_ratio_)) return;
    worst_ratio_ = measured;
    worst_ = WorstElement{std::string(output), index, got, expected, bound};
  }

  bool failed() const { return failures_ > 0; }
  /// Nearly all elements had a bound that is infinite or as large as the value, and so proved nothing.
  bool mistrusted() const {
    return compared_ > 0 && static_cast<double>(vacuous_) >= 0.95 * static_cast<double>(compared_);
  }
  double error_over_bound() const { return worst_ratio_; }
  const std::optional<WorstElement>& worst() const { return worst_; }
  std::int64_t compared() const { return compared_; }
  /// "3 of 64 elements are wrong; the worst: o[0,0,3,2] = 0.5, expected 0.25 +- 1e-7".
  std::string describe() const;
  /// Which kind of wrong, and of which output.
  FailureCause cause() const;

 private:
  void count_failure(double got, double expected) {
    ++failures_;
    if (std::isfinite(expected) && !std::isfinite(got)) ++not_finite_;
  }

  std::int64_t compared_ = 0, failures_ = 0, vacuous_ = 0, not_finite_ = 0;
  double worst_ratio_ = 0;
  std::optional<WorstElement> worst_;
};

/// Calls visit(output's name, index, got, expected, bound) for every element that the call asks for and the
/// expectation covers.
template <class Visit>
void each_result(const Call& p, const Expectation& e, const Bounds& bounds, const GuardedOutputs& outputs,
                 const Visit& visit) {
  const auto columns = static_cast<std::size_t>(p.value_dim), keys = static_cast<std::size_t>(p.key_length);
  const bool wants_out = p.wants(Output::o), wants_lse = p.wants(Output::lse), wants_scores = p.wants_scores();
  std::vector<double> got(std::max(columns, keys));
  for (std::size_t r = 0; r < e.rows.size(); ++r) {
    const auto [b, h, i] = e.rows[r];
    if (wants_out) outputs.read_out(b, h, i, std::span(got).first(columns));
    for (std::size_t c = 0; wants_out && c < columns; ++c) {
      const std::size_t at = r * columns + c;
      visit("o", Index4{b, h, i, static_cast<std::int64_t>(c)}, got[c], e.out[at], bounds.out[at] + e.own.out[at]);
    }
    if (wants_lse) visit("lse", Index4{b, h, i, 0}, outputs.lse(b, h, i), e.lse[r], bounds.lse[r] + e.own.lse[r]);
    for (std::size_t n = 0; wants_scores && n < kScoreStages.size(); ++n) {
      if (!p.wants(kScoreStages[n])) continue;
      outputs.read_stage(kScoreStages[n], b, h, i, std::span(got).first(keys));
      for (std::size_t j = 0; j < keys; ++j) {
        const std::size_t at = r * keys + j;
        visit(name_of(kScoreStages[n]), Index4{b, h, i, static_cast<std::int64_t>(j)}, got[j], e.stages[n][at],
              bounds.stages[n][at] + e.own.stages[n][at]);
      }
    }
  }
  const std::vector<PresentOutput> present = present_outputs(p);
  for (std::size_t n = 0; n < present.size(); ++n) {
    std::size_t at = 0;
    each_index(present[n].shape, [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
      visit(present[n].name, Index4{b, h, l, d}, outputs.present(n, b, h, l, d), e.present[n][at],
            bounds.present[n][at] + e.own.present[n][at]);
      ++at;
    });
  }
}

/// The sampled output that lies furthest off in standard deviations; nothing where none is claimed.
struct Deviation {
  double ratio = 0;  ///< error over standard deviation
  WorstElement element;
};
std::optional<Deviation> largest_deviation(const Expectation& expectation, std::size_t producer,
                                           const GuardedOutputs& outputs);

/// Every output that the call asks for.
Comparison compare_outputs(const Call& call, const Expectation& expectation, const Bounds& bounds,
                           const GuardedOutputs& outputs);

}  // namespace attest
