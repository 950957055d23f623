// Errors of an output in units in the last place of its type: what its neighbours in storage are apart.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "harness/comparison/expectation.h"
#include "harness/comparison/guarded_outputs.h"
#include "reference/call/call.h"

namespace attest {

/// The distance between neighbours of the type at the magnitude of `value`, which is finite: 2^(e + 1 - p) for
/// 2^e <= |value| < 2^(e+1) and p bits of precision. 0 and subnormal numbers have that of the smallest normal number,
/// and what lies beyond the range that of the largest.
double unit_in_last_place(double value, DType type);

struct UlpErrors {
  double median = 0, largest = 0;
  std::int64_t elements = 0;  ///< that were compared
};

/// "0.5 (1.25)": the median and, in brackets, the largest.
std::string text_of(const UlpErrors& errors);

/// |got - expected| / unit_in_last_place(expected), over the elements of `o` in the expectation's rows. Left out are
/// those whose bound is infinite, and those where a number is expected or found that isn't finite: the class decides
/// there. Nothing where that leaves none, or `o` was not asked for.
std::optional<UlpErrors> ulp_errors(const Call& call, const Expectation& expectation, const Bounds& bounds,
                                    const GuardedOutputs& outputs);

}  // namespace attest
