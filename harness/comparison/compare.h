// Comparison of one result with its expectation, element by element. Class first, then the bound; nothing else.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "harness/comparison/expectation.h"
#include "harness/comparison/guarded_outputs.h"
#include "harness/comparison/worst_element.h"
#include "reference/error_deviation.h"
#include "reference/operator_tensors.h"

namespace attest {

/// How far one element is off, in units of its bound; infinity where the classes differ. Class first: equal infinities
/// agree, an expected NaN accepts NaN or infinity, an expected finite value accepts neither. Where the bound is
/// infinite nothing can be said, which is 0: the arithmetic may overflow. Data that are not finite have a bound of 0
/// (reference/non_finite.h).
double error_in_bounds(double got, double expected, double bound);

/// What the elements compared so far add up to.
class Comparison {
 public:
  /// One element; it fails unless error_in_bounds is at most 1.
  void element(const std::string& output, const std::array<std::int64_t, 4>& index, double got, double expected,
               double bound);

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
  /// Which kind of wrong: "NaN or infinity", "outside the bound", ...
  std::string cause() const;

 private:
  std::int64_t compared_ = 0, failures_ = 0, vacuous_ = 0, not_finite_ = 0;
  double worst_ratio_ = 0;
  std::optional<WorstElement> worst_;
};

/// Calls visit(output name, index, got, expected, bound) for every element that the call asks for and the
/// expectation covers.
template <class Visit>
void each_result(const Call& p, const Expectation& e, const Bounds& bounds, const GuardedOutputs& outputs,
                 const Visit& visit) {
  const auto columns = static_cast<std::size_t>(p.value_dim), keys = static_cast<std::size_t>(p.key_length);
  const bool wants_out = p.wants(Output::o), wants_lse = p.wants(Output::lse);
  for (std::size_t r = 0; r < e.rows.size(); ++r) {
    const auto [b, h, i] = e.rows[r];
    for (std::size_t c = 0; wants_out && c < columns; ++c) {
      const std::size_t at = r * columns + c;
      const auto column = static_cast<std::int64_t>(c);
      visit("o", Index4{b, h, i, column}, outputs.out(b, h, i, column), e.out[at], bounds.out[at] + e.own.out[at]);
    }
    if (wants_lse) visit("lse", Index4{b, h, i, 0}, outputs.lse(b, h, i), e.lse[r], bounds.lse[r] + e.own.lse[r]);
    for (std::size_t n = 0; n < kScoreStages.size(); ++n) {
      if (!p.wants(kScoreStages[n])) continue;
      const std::string name(name_of(kScoreStages[n]));
      for (std::size_t j = 0; j < keys; ++j) {
        const std::size_t at = r * keys + j;
        const auto key = static_cast<std::int64_t>(j);
        visit(name, Index4{b, h, i, key}, outputs.stage(kScoreStages[n], b, h, i, key), e.stages[n][at],
              bounds.stages[n][at] + e.own.stages[n][at]);
      }
    }
  }
  const std::vector<PresentOutput> present = present_outputs(p);
  for (std::size_t n = 0; n < present.size(); ++n) {
    std::size_t at = 0;
    each_index(present[n].shape, [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
      visit(std::string(present[n].name), Index4{b, h, l, d}, outputs.present(n, b, h, l, d), e.present[n][at],
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
