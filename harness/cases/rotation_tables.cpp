#include "harness/cases/rotation_tables.h"

#include <cmath>
#include <numbers>

namespace attest {
namespace {

/// By the series of the inverse hyperbolic tangent, for x of at least 1.
double logarithm(double x) {
  int exponent = 0;
  const double part = 2 * std::frexp(x, &exponent);  // in [1, 2)
  const double ratio = (part - 1) / (part + 1);
  double sum = 0, power = ratio;
  for (int n = 1; n < 60; n += 2) {
    sum += power / n;
    power *= ratio * ratio;
  }
  return 2 * sum + (exponent - 1) * std::numbers::ln2;
}

/// By the series of exp, for x of at most 0, after powers of two.
double exponential(double x) {
  const double halvings = std::floor(x / std::numbers::ln2 + 0.5), rest = x - halvings * std::numbers::ln2;
  double sum = 1, term = 1;
  for (int n = 1; n < 24; ++n) {
    term = term * rest / n;
    sum += term;
  }
  return std::ldexp(sum, static_cast<int>(halvings));
}

/// The series of cosine (`odd` false) or sine, for an angle of at least 0, taken into [-pi, pi] first.
double series(double angle, bool odd) {
  const double turns = std::floor(angle / (2 * std::numbers::pi) + 0.5);
  const double x = angle - turns * (2 * std::numbers::pi);
  double term = odd ? x : 1, sum = term;
  for (int n = odd ? 1 : 0; n < 30; n += 2) {
    term = -term * x * x / ((n + 1) * (n + 2));
    sum += term;
  }
  return sum;
}

}  // namespace

RotationTables::RotationTables(double base, std::int64_t dims) {
  const double log_base = logarithm(base);
  for (std::int64_t r = 0; r < dims / 2; ++r)
    frequencies_.push_back(exponential(-2 * static_cast<double>(r) / static_cast<double>(dims) * log_base));
}

double RotationTables::cos(std::int64_t position, std::int64_t pair) const {
  return series(static_cast<double>(position) * frequencies_[static_cast<std::size_t>(pair)], false);
}

double RotationTables::sin(std::int64_t position, std::int64_t pair) const {
  return series(static_cast<double>(position) * frequencies_[static_cast<std::size_t>(pair)], true);
}

}  // namespace attest
