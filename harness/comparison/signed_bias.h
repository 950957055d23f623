// Whether the errors of a result lean to one side. No bound on their size sees it, and sums of many results, as in
// training, keep what leans: Qiu and Yao, arXiv 2510.04212.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

namespace attest {

/// Mean errors of one result, in units of what independent roundings give: the root mean square of its errors over the
/// square root of their number. About 1 where roundings are independent; up to that square root where all are alike.
struct SignedBias {
  std::string output;
  std::int64_t elements = 0;  ///< finite ones that were compared
  double up = 0;              ///< of errors as they are
  double outward = 0;         ///< of errors away from zero: below 0 where numbers are cut off
};

/// The sums of one result's errors.
class ErrorSums {
 public:
  void add(double got, double expected) {
    const double error = got - expected;
    if (!std::isfinite(error)) return;
    ++elements_;
    sum_ += error;
    outward_ += std::signbit(expected) ? -error : error;
    squares_ += error * error;
  }

  SignedBias bias(std::string output) const {
    const double root = std::sqrt(squares_);
    if (!(root > 0) || !std::isfinite(root)) return {std::move(output), elements_, 0, 0};
    return {std::move(output), elements_, sum_ / root, outward_ / root};
  }

 private:
  std::int64_t elements_ = 0;
  double sum_ = 0, outward_ = 0, squares_ = 0;
};

}  // namespace attest
