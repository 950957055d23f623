#include "harness/cases/long_case.h"

#include <fmt/format.h>

#include <cstdio>

#include "harness/base/text.h"
#include "reference/operators/operator.h"

namespace attest {

namespace {
constexpr double kPlainLoopsPerSecond = 1e9;  ///< multiply-adds of one core, in round numbers
}

double multiply_adds_of(const Call& call) {
  return static_cast<double>(call.batch) * static_cast<double>(call.query_heads) *
         static_cast<double>(call.query_length) * operator_of(call).row_operations(call);
}

std::string long_case_words(const std::string& label, double multiply_adds) {
  return fmt::format(
      "attest: long case, {:.0f} billion multiply-adds on each backend (about {:.0f} s in plain loops on one core): {}",
      multiply_adds / 1e9, multiply_adds / kPlainLoopsPerSecond, printable_line(label));
}

void announce_if_long(const Call& call, const std::string& label) {
  const double multiply_adds = multiply_adds_of(call);
  if (multiply_adds < kLongMultiplyAdds) return;
  fmt::print(stderr, "{}\n", long_case_words(label, multiply_adds));
  std::fflush(stderr);
}

}  // namespace attest
