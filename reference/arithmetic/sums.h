// What adding terms costs where it is stated: Rounding::score_sum and its like.
#pragma once

#include <algorithm>
#include <cmath>

#include "reference/arithmetic/rounding.h"

namespace attest {

/// Of the steps of one sum. A step aligns `width` terms and what was there to the largest of them, cuts each and what
/// comes out, all by u at most, relative to that largest one.
struct SumRounding {
  double u = 0;
  double u_result = 0;  ///< of what comes out of a step, where the format holds fewer bits than a step keeps
  double eta = 0, largest = kInfinity;
};

constexpr DType type_of(const Sum& sum, DType accumulator) {
  const DType own = sum.format == SumFormat::f32    ? DType::f32
                    : sum.format == SumFormat::bf16 ? DType::bf16
                    : sum.format == SumFormat::f16  ? DType::f16
                                                    : accumulator;
  return narrower(own, accumulator) ? own : accumulator;
}

inline SumRounding rounding_of(const Sum& sum, const Rounding& a) {
  if (sum.format == SumFormat::exact) return {};
  const DType held = type_of(sum, a.accumulator);
  const double to_zero = sum.directed ? 2 : 1, of_format = to_zero * unit_roundoff(held);
  SumRounding rounding{of_format, 0, to_zero * underflow_unit(held, a.flush_to_zero), kInfinity};
  if (sum.bits > 0) rounding.u = to_zero * std::ldexp(0.5, -sum.bits);
  if (rounding.u < of_format) rounding.u_result = of_format;
  if (held != a.accumulator) rounding.largest = largest_of(held);
  return rounding;
}

/// Of a whole sum: how far it is off, relative to the sum of its terms' magnitudes, and what underflows in it.
struct SumCost {
  double relative = 0, lost = 0;
};

/// Of `terms` terms that are not 0, among `length`, in `blocks` blocks, each of which may begin steps and windows of
/// its own and rescales what was there; 0: in one pass. A term goes through the steps of one window, and the sum of
/// that window through those of all the others.
inline SumCost cost_of(const Sum& sum, const Rounding& a, double terms, double length, double blocks) {
  const auto gamma = [](double k, double u) { return k * u < 1 ? k * u / (1 - k * u) : kInfinity; };
  const auto both = [](double x, double y) { return x + y + x * y; };
  const double u = unit_roundoff(a.accumulator);
  // A block's sum of integers is rounded, added and rescaled in the accumulator.
  if (sum.format == SumFormat::exact) return {gamma(std::min(terms, blocks) + blocks, u), 0};
  const SumRounding step = rounding_of(sum, a);
  const auto window = static_cast<double>(sum.promote), width = static_cast<double>(sum.width);
  const bool promotes = sum.promote > 0;
  const double chain = promotes ? std::min(terms, window) : terms;
  const double longest = promotes ? std::min(length, window) : length;
  const double steps = sum.width > 1 ? std::min(chain, std::ceil(longest / width) + (promotes ? 0 : blocks)) : 0;
  // What is never promoted is rescaled as it is kept.
  const double roundings = chain + 2 * steps + (promotes ? 0 : blocks);
  const double of_results = gamma((sum.width > 1 ? steps : chain) + (promotes ? 0 : blocks), step.u_result);
  const double windows = promotes ? std::min(terms, std::ceil(length / window) + blocks) + blocks : 0;
  const double aligned = sum.width > 1 ? 2 * terms : 0;
  return {both(both(gamma(roundings, step.u), of_results), gamma(windows, u)), step.eta * (terms + aligned + blocks)};
}

}  // namespace attest
