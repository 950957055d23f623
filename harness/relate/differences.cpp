#include "harness/relate/differences.h"

#include <bit>
#include <cmath>
#include <numbers>

#include "harness/verdict/answers.h"
#include "harness/verdict/stated_conventions.h"

namespace attest {

bool have_same_bits(double one, double other) {
  return std::bit_cast<std::uint64_t>(one) == std::bit_cast<std::uint64_t>(other) ||
         (std::isnan(one) && std::isnan(other));
}

double Difference::fraction() const {
  // What data make NaN may be an infinity, too (harness/comparison/compare.h).
  if (std::isnan(expected)) return std::isfinite(whole) == std::isfinite(other) ? 0 : kInfinity;
  if (allowed == kInfinity || whole == other) return 0;
  if (!std::isfinite(whole) || !std::isfinite(other)) return kInfinity;
  return allowed > 0 ? std::fabs(whole - other) / allowed : kInfinity;
}

void Differences::add(const Difference& one) {
  ++differing;
  const double fraction = one.fraction();
  if (!(fraction <= 1)) {
    ++outside;
    if (!first_outside) first_outside = one;
  }
  if (!first) first = one;
  if (!largest || fraction > largest->fraction()) largest = one;
}

void Differences::add(const Differences& others) {
  elements += others.elements;
  differing += others.differing;
  outside += others.outside;
  if (!first) first = others.first;
  if (!first_outside) first_outside = others.first_outside;
  if (others.largest && (!largest || others.largest->fraction() > largest->fraction())) largest = others.largest;
}

BoundedResults::BoundedResults(const Backend& backend, const Problem& problem, const Inputs& inputs, int threads)
    : call_(problem.call) {
  const Conventions conventions = backend.conventions();
  StatedCall stated = call_as_stated(conventions, problem.call, inputs, backend.arithmetic(problem.call));
  const Expectation e =
      expect({stated.taken.call, problem.data}, stated.taken.inputs, {{stated.arithmetic, {}}}, threads, kInfinity);
  for (const TensorId result : results_of(call_)) {
    const Index4 n = seen_shape(call_, result);
    elements_[static_cast<std::size_t>(result)].resize(static_cast<std::size_t>(n[0] * n[1] * n[2] * n[3]));
  }
  const GuardedOutputs none(call_);
  each_result(
      call_, e, e.bounds.front(), none,
      [&](const TensorRow& row, const Index4& at, double, double value, double bound) {
        const double unit = row.id == TensorId::lse && conventions.lse_base == "2" ? std::numbers::log2e : 1;
        elements_[static_cast<std::size_t>(row.id)][place_of_element(row.id, at)] = {value * unit, bound * unit};
      });
}

std::size_t BoundedResults::place_of_element(TensorId result, const Index4& at) const {
  const Index4 n = seen_shape(call_, result);
  return static_cast<std::size_t>(((at[0] * n[1] + at[1]) * n[2] + at[2]) * n[3] + at[3]);
}

const BoundedElement& BoundedResults::at(TensorId result, const Index4& index) const {
  return elements_[static_cast<std::size_t>(result)][place_of_element(result, index)];
}

Differences differences(const Call& whole, const GuardedOutputs& of_whole, const Arrangement& part,
                        const GuardedOutputs& of_part, const MakeBounds& whole_bounds, const MakeBounds& part_bounds) {
  Differences found;
  each_common_element(whole, of_whole, part, of_part,
                      [&](TensorId result, const Index4& at, const Index4& at_part, double one, double other) {
                        ++found.elements;
                        if (have_same_bits(one, other)) return;
                        const BoundedElement &of_one = whole_bounds().at(result, at),
                                             &of_other = part_bounds().at(result, at_part);
                        found.add({result, at, one, other, of_one.expected, of_one.bound + of_other.bound});
                      });
  return found;
}

}  // namespace attest
