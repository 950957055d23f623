// Steps of operands as the emulator finds them: the largest number of a group of tokens, hidden ones included, over the
// largest of the format, and a little more where an adversary may.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "reference/arithmetic/arithmetic.h"
#include "tests/emulator/steps.h"

namespace attest::emulator {

/// A step of those that share it, made from the largest of their magnitudes.
inline Number step_of(Number largest, OperandFormat format, const OperandRounding& own, const Steps& steps) {
  if (largest == 0 || !std::isfinite(largest)) return largest;
  const Number most = static_cast<Number>(rounding_of(format, false).largest);
  if (own.power_of_two) {
    // Floating formats take the exponents apart, and saturate; integers don't.
    const bool integers = format == OperandFormat::int8 || format == OperandFormat::u8 || format == OperandFormat::int4;
    return integers ? std::exp2(std::ceil(std::log2(largest / most)))
                    : std::exp2(std::floor(std::log2(largest)) - std::floor(std::log2(most)));
  }
  const Number step = steps.round(largest / most);
  return steps.adversarial() ? step * (1 + static_cast<Number>(own.slack) / 2) : step;
}

class GroupSteps {
 public:
  GroupSteps() = default;

  /// `numbers(row)`: a token as it is rounded; `factor`: of the scale, that it has.
  template <class Numbers>
  GroupSteps(OperandFormat format, const OperandRounding& own, std::size_t rows, std::size_t columns, Number factor,
             const Steps& steps, const Numbers& numbers)
      : fixed_(static_cast<Number>(own.step) * (own.step == 1 && !has_step(format, own) ? 1 : std::fabs(factor))) {
    if (own.step != 0) return;
    rows_ = own.rows == 0 ? std::max<std::size_t>(rows, 1) : static_cast<std::size_t>(own.rows);
    columns_ = own.columns == 0 ? std::max<std::size_t>(columns, 1) : static_cast<std::size_t>(own.columns);
    per_row_ = (columns + columns_ - 1) / columns_;
    steps_.assign((rows + rows_ - 1) / rows_ * per_row_, 0);
    for (std::size_t row = 0; row < rows; ++row) {
      const std::vector<Number> x = numbers(row);
      for (std::size_t column = 0; column < columns; ++column) {
        Number& largest = steps_[group(row, column)];
        const Number here = std::fabs(x[column]);
        if (!(here <= largest)) largest = here;
      }
    }
    for (Number& step : steps_) step = step_of(step, format, own, steps);
  }

  Number step(std::size_t row, std::size_t column) const {
    return steps_.empty() ? fixed_ : steps_[group(row, column)];
  }

 private:
  std::size_t group(std::size_t row, std::size_t column) const { return row / rows_ * per_row_ + column / columns_; }

  Number fixed_ = 1;
  std::size_t rows_ = 1, columns_ = 1, per_row_ = 1;
  std::vector<Number> steps_;
};

}  // namespace attest::emulator
