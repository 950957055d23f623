// Comparison of one result with its expectation, element by element. Class first, then the bound; nothing else.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "harness/expectation.h"
#include "harness/guarded_outputs.h"
#include "harness/verdict.h"

namespace attest {

/// What the elements compared so far add up to.
class Comparison {
 public:
  /// One element. Equal infinities pass; an expected NaN accepts NaN or infinity; an expected finite value never
  /// does; then !(error <= bound) fails.
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

/// Every output that the problem asks for.
Comparison compare_outputs(const Problem& problem, const Expectation& expectation, const Bounds& bounds,
                           const GuardedOutputs& outputs);

}  // namespace attest
