#include "harness/comparison/ulps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/base/statistics.h"
#include "harness/comparison/compare.h"
#include "reference/arithmetic/arithmetic.h"

namespace attest {
double unit_in_last_place(double value, DType type) {
  const double magnitude = std::clamp(std::fabs(value), smallest_normal(type), largest_of(type));
  return std::scalbn(2 * unit_roundoff(type), std::ilogb(magnitude));
}

std::string text_of(const UlpErrors& errors) { return fmt::format("{:.2g} ({:.3g})", errors.median, errors.largest); }

std::optional<UlpErrors> ulp_errors(const Call& call, const Expectation& expectation, const Bounds& bounds,
                                    const GuardedOutputs& outputs) {
  std::vector<double> errors;
  each_result(
      call, expectation, bounds, outputs,
      [&](const TensorRow& output, const Index4&, double got, double expected, double bound) {
        if (output.id != TensorId::out || bound == kInfinity || !std::isfinite(got) || !std::isfinite(expected)) return;
        errors.push_back(std::fabs(got - expected) / unit_in_last_place(expected, type_of(call, TensorId::out)));
      });
  if (errors.empty()) return std::nullopt;
  UlpErrors result{0, *std::max_element(errors.begin(), errors.end()), static_cast<std::int64_t>(errors.size())};
  result.median = median(std::move(errors));
  return result;
}

}  // namespace attest
