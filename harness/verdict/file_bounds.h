// How far the results that a file holds may lie from the reference's, by what the file states of their producer.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/cases/case.h"
#include "harness/comparison/expectation.h"

namespace attest {

/// The bounds of a stated producer, each with the reference's own added. Without a producer all of them are empty or 0:
/// then only the file's tolerances count.
class FileBounds {
 public:
  /// Runs the reference over all rows of the case where its file states a producer.
  FileBounds(const Case& source, const Inputs& inputs);

  /// Elements of a result of all rows in the order b, h, i, column. `name` as in harness/FILES.md: output, lse, raw or
  /// scores, raw_scores, capped, biased or masked_scores, weights. Empty for other names.
  std::vector<double> of_rows(const std::string& name) const;
  /// Elements of present_k, present_v or present_state.
  std::vector<double> of_present(TensorId output) const;

  /// What additions in any order do to the sum of `terms`, each of them off by its element of `errors` (if any).
  double of_sum(std::span<const double> terms, std::span<const double> errors = {}) const;
  /// The same for the mean, for the variance about it (computed in two passes; divided by `count`), and for its root.
  double of_mean(std::span<const double> values, std::span<const double> errors = {}) const;
  double of_variance(std::span<const double> values, double count, std::span<const double> errors = {}) const;
  double of_deviation(std::span<const double> values) const;

 private:
  double gamma(double roundings) const;
  /// Bound of a number of this size after it was stored in the type of the results.
  double stored(double value, double error) const;

  Problem problem_;
  const Inputs& inputs_;
  std::optional<Producer> producer_;
  Expectation expected_;
};

}  // namespace attest
