// One rounding after another, as a declared arithmetic has them: the emulator's numbers.
//
// Numbers are long doubles. With Behaviour::random every step is rounded to nearest in its type and functions are off
// by random amounts. With Behaviour::adversary every step goes as far as a number of its type lies that the declaration
// allows, up, down or as the number has it: a bad machine, but one. With Behaviour::limit it is off by all that is
// declared, in the direction asked for, whether a number lies there or not.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <utility>
#include <vector>

#include "reference/arithmetic/arithmetic.h"
#include "reference/arithmetic/rounding.h"
#include "reference/arithmetic/sums.h"
#include "reference/base/half.h"

namespace attest::emulator {

using Number = long double;

enum class Behaviour { random, adversary, limit };

/// x to nearest in `type`, subnormals included; an infinity beyond its range.
inline Number to_nearest(Number x, DType type) {
  if (type == DType::f64) return static_cast<double>(x);
  if (type == DType::f32) return static_cast<float>(x);
  const auto exact = static_cast<double>(x);
  return type == DType::f16 ? f16_to_float(to_f16(exact)) : bf16_to_float(to_bf16(exact));
}

/// x to nearest among numbers with so many bits of fraction that are multiples of 2^lowest, up to the largest.
inline Number in_eight_bits(Number x, int bits, int lowest, Number largest) {
  if (x == 0 || !std::isfinite(x)) return x;
  int exponent = 0;
  std::frexp(x, &exponent);
  const int unit = std::max(exponent - 1 - bits, lowest);
  return std::clamp(std::ldexp(std::nearbyint(std::ldexp(x, -unit)), unit), -largest, largest);
}

/// x to nearest in a format of operands.
inline Number to_nearest(Number x, OperandFormat format) {
  switch (format) {
    case OperandFormat::exact: return x;
    case OperandFormat::bf16: return to_nearest(x, DType::bf16);
    case OperandFormat::f16: return to_nearest(x, DType::f16);
    case OperandFormat::tf32: break;
    case OperandFormat::e4m3: return in_eight_bits(x, 3, -9, 448);
    case OperandFormat::e5m2: return in_eight_bits(x, 2, -16, 57344);
    case OperandFormat::int8: return std::clamp(std::nearbyint(x), Number{-127}, Number{127});
    case OperandFormat::u8: return std::clamp(std::nearbyint(x), Number{0}, Number{255});
    case OperandFormat::int4: return std::clamp(std::nearbyint(x), Number{-7}, Number{7});
    case OperandFormat::e2m1: return in_eight_bits(x, 1, -1, 6);
    case OperandFormat::bf16x3: {
      const Number high = to_nearest(x, DType::bf16);
      return std::isfinite(high) ? high + to_nearest(x - high, DType::bf16) : high;
    }
  }
  if (x == 0 || !std::isfinite(x)) return x;
  int exponent = 0;
  std::frexp(x, &exponent);
  const int unit = std::max(exponent - 11, -136);  // of the last bit; the smallest subnormal is 2^-136
  const Number rounded = std::ldexp(std::nearbyint(std::ldexp(x, -unit)), unit);
  return std::fabs(rounded) < 0x1p128L ? rounded : std::copysign(std::numeric_limits<Number>::infinity(), x);
}

/// x cut towards zero.
inline Number cut(Number x, OperandFormat format) {
  if (format == OperandFormat::bf16x3) {
    const Number high = cut(x, OperandFormat::bf16);
    return std::isfinite(high) ? high + cut(x - high, OperandFormat::bf16) : high;
  }
  const Number y = to_nearest(x, format), off = y - x;
  if (!std::isfinite(y) || std::fabs(y) <= std::fabs(x)) return y;
  // The number before y is the nearest of all that lie between the two middles around it.
  for (Number way = off;; way *= 2) {
    const Number z = to_nearest(x - way, format);
    if (std::fabs(z) <= std::fabs(x)) return z;
  }
}

class Steps {
 public:
  Steps(const Arithmetic& a, Behaviour behaviour, bool clamped_exp)
      : a_(a),
        behaviour_(behaviour),
        clamped_exp_(clamped_exp),
        u_(unit_roundoff(a.accumulator)),
        smallest_(a.accumulator == DType::f64 ? 0x1p-1022L : 0x1p-126L) {}

  void seed(std::uint64_t seed) { state_ = seed_ = seed; }
  bool adversarial() const { return behaviour_ != Behaviour::random; }

  /// A result of the accumulator's type; `push` is the adversary's direction, 1 or -1.
  Number round(Number x, int push = 1) const { return flushed(pushed(x, a_.accumulator, push)); }
  /// The last step of a result, which is handed over as it is.
  Number nearest(Number x) const { return flushed(to_nearest(x, a_.accumulator)); }
  /// Kept for a while in a type that may be narrower.
  Number stored(Number x, DType type, int push) const {
    return narrower(type, a_.accumulator) ? pushed(x, type, push) : x;
  }

  /// An operand on its way into a product.
  Number operand(Number x, OperandFormat format, int push, bool directed = false) const {
    if (format == OperandFormat::exact) return x;
    const Number y = pushed_operand(x, format, push, directed);
    const bool flushes = format == OperandFormat::tf32 || format == OperandFormat::bf16;
    return a_.flush_to_zero && flushes && std::fabs(y) < 0x1p-126L ? 0 : y;
  }
  /// The same of one that has a step. Zeros alone have a step of 0.
  Number operand(Number x, OperandFormat format, const OperandRounding& own, Number step, int push) const {
    if (format == OperandFormat::exact) return x;
    if (step == 1) return operand(x, format, push, own.directed);
    return step == 0 ? 0 : step * operand(round(x / step, push), format, push, own.directed);
  }
  /// The weights in P*V.
  Number weight(Number x, Number step, int push) const {
    return a_.weight_operand == OperandFormat::exact ? stored(x, a_.stored_weights, push)
                                                     : operand(x, a_.weight_operand, a_.weight_rounding, step, push);
  }
  /// A product of two operands, of which one may be made of two parts: what is left of it.
  std::vector<Number> products(Number x, OperandFormat of_x, Number y, OperandFormat of_y) const {
    if (of_x != OperandFormat::bf16x3 && of_y != OperandFormat::bf16x3) return {x * y};
    const auto high = [](Number z, OperandFormat format) {
      return format == OperandFormat::bf16x3 ? to_nearest(z, DType::bf16) : z;
    };
    const Number high_x = high(x, of_x), high_y = high(y, of_y);
    return {high_x * high_y, high_x * (y - high_y), (x - high_x) * high_y};
  }

  /// What is read: subnormals of the accumulator's type may count as 0.
  Number input(double x) const { return flushed(x); }
  /// The same of a code times its scale, which is a step of its own where there are scales.
  Number input(double x, bool is_scaled, int push = 1) const { return is_scaled ? round(x, push) : flushed(x); }

  /// `rescales`: what was summed under an older maximum.
  Number exp(Number x, int push, bool rescales = false) {
    x = operand(x, a_.exp_argument, push);
    if (clamped_exp_) x = std::max(x, lowest_argument());
    // Nearly every exp(0) is 1, but that is not declared.
    if (x == 0 && (seed_ % 2 == 0 || behaviour_ == Behaviour::adversary)) return 1;
    return approximated(x, a_.base2 ? std::exp2(x) : std::exp(x), push, rescales);
  }
  /// The same of an argument in units of log 2.
  Number exp2(Number x, int push, bool rescales = false) {
    x = operand(x, a_.exp_argument, push);
    if (clamped_exp_) x = std::max(x, lowest_argument() * (a_.base2 ? 1 : std::numbers::log2e_v<Number>));
    if (x == 0 && (seed_ % 2 == 0 || behaviour_ == Behaviour::adversary)) return 1;
    return approximated(x, std::exp2(x), push, rescales);
  }
  Number log(Number x, int push) { return off(x, a_.base2 ? std::log2(x) : std::log(x), a_.log_ulps, push); }
  Number tanh(Number x, int push) { return off(x, std::tanh(x), a_.tanh_ulps, push); }

  /// x / y. A division that is the last step of a result ends on a number of the accumulator's type.
  Number divide(Number x, Number y, int push, bool last) {
    const auto end = [&](Number z) { return last ? nearest(z) : round(z, push); };
    switch (a_.division) {
      case Division::ieee: return end(x / y);
      case Division::reciprocal: return end(x * round(1 / y, push));
      case Division::opencl_division: return end(off_by(x / y, 4 * u_, push, x + 3 * y));
      case Division::opencl_reciprocal: return end(x * round(off_by(1 / y, 4 * u_, push, y), push));
    }
    return 0;
  }

  /// The terms' sum in an order of its own: as they come, shuffled, or in pairs.
  Number sum(std::vector<Number>& terms, int push, bool last = false) {
    if (terms.empty()) return 0;
    reorder(terms);
    if (behaviour_ == Behaviour::random && order_ == 2) return in_pairs(terms.data(), terms.size());
    Number total = terms[0];
    for (std::size_t n = 1; n < terms.size(); ++n) {
      total = last && n + 1 == terms.size() ? total + terms[n] : round(total + terms[n], push);
    }
    return last ? nearest(total) : total;
  }
  void reorder(std::vector<Number>& terms) {
    if (behaviour_ == Behaviour::random && order_ > 0) shuffle(terms);
  }

  /// x on the grid that so many bits of fraction give numbers of the size of `largest`: to nearest or cut, or as far as
  /// it may go.
  Number on_grid(Number x, Number largest, int bits, const SumRounding& step, bool directed, int push) const {
    int exponent = 0;
    std::frexp(largest, &exponent);
    const Number eta = static_cast<Number>(step.eta);
    const Number unit = std::max(std::ldexp(Number{1}, exponent - 1 - bits), directed ? eta : 2 * eta);
    const Number reach = std::max(static_cast<Number>(step.u) * largest, eta);
    if (behaviour_ == Behaviour::limit) return x + push * reach;
    const Number whole = x / unit, down = std::floor(whole) * unit, up = std::ceil(whole) * unit;
    if (behaviour_ == Behaviour::adversary) {
      const Number there = direction_of(x) > 0 ? up : down;
      if (std::fabs(there - x) <= reach) return there;
    }
    return directed ? std::trunc(whole) * unit : std::nearbyint(whole) * unit;
  }
  void choose_order() { order_ = static_cast<int>(word() % 3); }

  std::uint64_t word() {  // splitmix64
    return mixed(state_ += 0x9e3779b97f4a7c15U);
  }

 private:
  static std::uint64_t mixed(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
  }
  Number flushed(Number x) const { return a_.flush_to_zero && std::fabs(x) < smallest_ ? 0 : x; }
  /// x in the type: to nearest, or as far as `push` may take it. What the type holds is not rounded.
  Number pushed(Number x, DType type, int push) const {
    const Number y = to_nearest(x, type), smallest = type == DType::f64   ? 0x1p-1022L
                                                     : type == DType::f16 ? 0x1p-14L
                                                                          : 0x1p-126L;
    if (!adversarial() || y == x || !std::isfinite(y) || std::fabs(x) < smallest) return y;
    const Number reach = static_cast<Number>(unit_roundoff(type)) * std::fabs(x);
    if (behaviour_ == Behaviour::adversary) push = direction_of(x);
    if (behaviour_ == Behaviour::limit) return std::isfinite(to_nearest(x + push * reach, type)) ? x + push * reach : y;
    if ((y > x) == (push > 0)) return y;
    int exponent = 0;
    std::frexp(x, &exponent);
    const Number next = to_nearest(y + push * std::ldexp(static_cast<Number>(unit_roundoff(type)), exponent), type);
    return std::fabs(next - x) <= reach ? next : y;
  }
  /// The same of a format of operands: to nearest, or by as much as its roundoff and its smallest step allow.
  Number pushed_operand(Number x, OperandFormat format, int push, bool directed) const {
    const Number y = directed ? cut(x, format) : to_nearest(x, format);
    if (!adversarial() || directed || y == x || !std::isfinite(y)) return y;
    if (behaviour_ == Behaviour::adversary) push = direction_of(x);
    const FormatRounding of_format = rounding_of(format, false);
    // A third of what two parts lose is what is left out of their product.
    const double share = format == OperandFormat::bf16x3 ? 2.0 / 3 : 1;
    const Number of_u = static_cast<Number>(of_format.u * share) * std::fabs(x),
                 eta = static_cast<Number>(of_format.eta);
    const Number reach = std::max(of_u, eta);
    const Number moved = x + static_cast<Number>(push) * reach;
    if (moved * x < 0) return 0;  // nothing changes its sign
    if (behaviour_ == Behaviour::limit) return std::isfinite(to_nearest(moved, format)) ? moved : y;
    return y;
  }
  Number lowest_argument() const {
    const Number lowest = std::log(smallest_);
    // With its error the result is no larger than the smallest normal number.
    const Number argument = lowest - 4 * u_ * static_cast<Number>(a_.exp_ulps);
    return a_.base2 ? argument / 0.693147180559945309417L : argument;
  }
  /// The same for the same argument: a function has one value.
  Number off_by(Number y, Number relative, int push, Number argument) const {
    if (!adversarial()) return y * (1 + relative * unit_of(argument));
    if (behaviour_ == Behaviour::adversary) push = direction_of(argument);
    return y * (1 + static_cast<Number>(push) * relative * (y < 0 ? -1 : 1));
  }
  /// y, the function of x, within `ulps`, the rounding included.
  Number off(Number x, Number y, double ulps, int push) const {
    if (!std::isfinite(y)) return y;
    const Number relative = 2 * u_ * static_cast<Number>(ulps);
    if (behaviour_ == Behaviour::limit && std::fabs(y) >= smallest_) return off_by(y, relative, push, x);
    return nearest(off_by(y, std::max(relative - u_, 0.0L), push, x));
  }
  /// y, an exponential of x, off by all that is stated of it, and never negative.
  Number approximated(Number x, Number y, int push, bool rescales) const {
    if (y == 0 && x < 0 && std::isinf(x)) return 0;
    const bool own = rescales && a_.rescale_ulps >= 0;
    const Number z = off(x, y, own ? a_.rescale_ulps : a_.exp_ulps, push);
    if (own || a_.exp_absolute == 0 || !std::isfinite(z)) return z;
    const Number way = behaviour_ == Behaviour::random      ? unit_of(x + 1)
                       : behaviour_ == Behaviour::adversary ? direction_of(x)
                                                            : push;
    const Number moved = std::max(z + way * static_cast<Number>(a_.exp_absolute) * (1 - 2 * u_), Number{0});
    return behaviour_ == Behaviour::limit ? moved : nearest(moved);
  }
  /// Of a machine that rounds a number always the same way: up, down, or as the number has it.
  int direction_of(Number x) const {
    const std::uint64_t way = seed_ % 3;
    return way == 0 ? 1 : way == 1 ? -1 : unit_of(x) < 0 ? -1 : 1;
  }
  /// From -1 to 1, as if at random.
  Number unit_of(Number x) const {
    const std::uint64_t bits = std::bit_cast<std::uint64_t>(static_cast<double>(x) + 0.0) ^ seed_;
    return static_cast<Number>(static_cast<std::int64_t>(mixed(bits + 0x9e3779b97f4a7c15U))) * 0x1p-63L;
  }
  void shuffle(std::vector<Number>& terms) {
    for (std::size_t n = terms.size(); n > 1; --n) std::swap(terms[n - 1], terms[word() % n]);
  }
  Number in_pairs(const Number* terms, std::size_t count) const {
    if (count == 1) return terms[0];
    const std::size_t half = count / 2;
    return round(in_pairs(terms, half) + in_pairs(terms + half, count - half));
  }

  const Arithmetic a_;
  const Behaviour behaviour_;
  const bool clamped_exp_;
  const Number u_, smallest_;
  int order_ = 0;
  std::uint64_t state_ = 0, seed_ = 0;
};

}  // namespace attest::emulator
