// Sums of the emulator that are not made one by one in the accumulator's type: aligned, promoted, in narrow formats.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "reference/arithmetic/sums.h"
#include "tests/emulator/steps.h"

namespace attest::emulator {

class SumSteps {
 public:
  SumSteps(const Arithmetic& a, const Sum& sum, Steps& steps)
      : steps_(steps), sum_(sum), type_(type_of(sum, a.accumulator)), step_(rounding_of(sum, a)) {}

  /// A product, or another term, on its way into the sum. One that is aligned or an integer enters as it is.
  /// `is_sum`: the only product of a sum that is handed over, so that its rounding is the sum's last.
  Number product(Number x, int push, bool is_sum) const {
    if (plain()) return is_sum ? x : steps_.round(x, push);
    return term(x, push);
  }
  Number term(Number x, int push) const {
    return plain() || sum_.width > 1 || sum_.format == SumFormat::exact ? x : cut(x, x, push, true);
  }

  /// The terms' sum; `last`: handed over as it is.
  Number sum(std::vector<Number>& terms, int push, bool last = false) const {
    if (plain()) return steps_.sum(terms, push, last);
    steps_.reorder(terms);
    Number promoted = 0, here = 0;
    const auto width = static_cast<std::size_t>(sum_.width);
    const std::size_t window = sum_.promote > 0 ? static_cast<std::size_t>(sum_.promote) : terms.size();
    for (std::size_t first = 0; first < terms.size(); first += window) {
      here = 0;
      const std::size_t end = std::min(first + window, terms.size());
      for (std::size_t n = first; n < end; n += width) here = step(here, &terms[n], std::min(width, end - n), push);
      promoted = first == 0 ? here : steps_.round(promoted + here, push);
    }
    const Number total = sum_.promote > 0 ? promoted : here;
    return last || sum_.format == SumFormat::exact ? steps_.nearest(total) : total;
  }

  /// What becomes of a sum that is rescaled, or added to that of another block: it is kept in its format, unless it was
  /// promoted.
  Number rescaled(Number x, int push) const { return promoted() ? steps_.round(x, push) : cut(x, x, push, true); }
  Number joined(Number x, int push) const { return promoted() ? steps_.round(x, push) : added(x, push); }

 private:
  bool plain() const { return sum_ == Sum(); }
  bool promoted() const { return plain() || sum_.promote > 0 || sum_.format == SumFormat::exact; }

  Number step(Number here, const Number* terms, std::size_t count, int push) const {
    if (sum_.format == SumFormat::exact) {
      for (std::size_t n = 0; n < count; ++n) here += terms[n];
      return here;
    }
    Number largest = std::fabs(here), total = here;
    for (std::size_t n = 0; n < count; ++n) largest = std::max(largest, std::fabs(terms[n]));
    if (sum_.width == 1) {
      if (here == 0) return terms[0];  // exactly
      total += terms[0];
    } else {
      total = cut(here, largest, push);
      for (std::size_t n = 0; n < count; ++n) total += cut(terms[n], largest, push);
    }
    return added(total, push);
  }

  /// A sum of numbers of the format, of which nothing underflows.
  Number added(Number x, int push) const {
    SumRounding step = step_;
    step.eta = 0;
    return cut(x, x, push, true, step);
  }

  /// x on the grid of the numbers next to `largest`. The result of a step also ends in the sum's type.
  Number cut(Number x, Number largest, int push, bool result = false) const {
    return cut(x, largest, push, result, step_);
  }
  Number cut(Number x, Number largest, int push, bool result, const SumRounding& step) const {
    if (x == 0 || !std::isfinite(x) || !std::isfinite(largest)) return x;
    const int bits = sum_.bits > 0 ? sum_.bits : bits_of_type();
    const bool ends = result && step.u_result > 0;  // in a format of fewer bits, and of the same exponents
    const SumRounding first{step.u, 0, ends ? 0 : step.eta, kInfinity};
    Number y = steps_.on_grid(x, std::fabs(largest), bits, first, sum_.directed, push);
    if (ends) {
      y = steps_.on_grid(y, std::fabs(y), bits_of_type(), {step.u_result, 0, step.eta}, sum_.directed, push);
    }
    return std::isfinite(to_nearest(y, type_)) ? y : to_nearest(y, type_);
  }
  int bits_of_type() const {
    switch (type_) {
      case DType::f64: return 52;
      case DType::f32: return 23;
      case DType::f16: return 10;
      default: return 7;
    }
  }

  Steps& steps_;
  const Sum sum_;
  const DType type_;
  const SumRounding step_;
};

}  // namespace attest::emulator
