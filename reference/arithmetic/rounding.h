// What storing a result costs, for the bounds of every operator.
#pragma once

#include <algorithm>
#include <cmath>

#include "reference/arithmetic/arithmetic.h"

namespace attest {

/// exp(x) - 1 for an x that isn't negative, or up to 4e-7 of it more: many errors are this function of a small one.
inline double most_exp_minus_1(double x) { return x < 0x1p-10 ? x * (1 + x / 2 * (1 + x)) : std::expm1(x); }

constexpr bool narrower(DType a, DType b) { return unit_roundoff(a) > unit_roundoff(b); }

/// What a number too small to be held may lose: the smallest subnormal (half of it where a 16-bit type rounds), or the
/// smallest normal number where subnormals are flushed.
constexpr double underflow_unit(DType type, bool flush_to_zero) {
  if (!is_floating(type)) return 0;
  if (size_of(type) < 4) return smallest_subnormal(type) / 2;
  return flush_to_zero ? smallest_normal(type) : smallest_subnormal(type);
}

/// Numbers of this size still round to the largest of the type, and not to an infinity.
constexpr double largest_held(DType type) {
  return type == DType::f64 ? largest_of(type) : largest_of(type) * (1 + unit_roundoff(type) / 2);
}

/// What rounding costs: |rounded - x| <= u*|x| + eta while |x| <= largest.
struct FormatRounding {
  double u = 0, eta = 0;
  double largest = kInfinity;
};

/// Of an operand that is rounded to nearest. Units that flush float's subnormals flush those of the two formats with
/// float's exponents, which start at the same number.
constexpr FormatRounding rounding_of(OperandFormat format, bool flush_to_zero) {
  constexpr double kSmallestNormal = 0x1p-126;
  switch (format) {
    case OperandFormat::exact: return {};
    case OperandFormat::tf32: return {0x1p-11, flush_to_zero ? kSmallestNormal : 0x1p-137, 0x1p128 - 0x1p117};
    case OperandFormat::bf16: return {0x1p-8, flush_to_zero ? kSmallestNormal : 0x1p-134, 0x1p128 - 0x1p120};
    case OperandFormat::f16: return {0x1p-11, 0x1p-25, 65504};
    case OperandFormat::e4m3: return {0x1p-4, 0x1p-10, 448};
    case OperandFormat::e5m2: return {0x1p-3, 0x1p-17, 57344};
    case OperandFormat::int8: return {0, 0.5, 127};
    case OperandFormat::u8: return {0, 0.5, 255};
    case OperandFormat::int4: return {0, 0.5, 7};
    case OperandFormat::e2m1: return {0x1p-2, 0x1p-2, 6};
    // Each part that is left out, and a half of the product of the small ones.
    case OperandFormat::bf16x3:
      return {1.5 * 0x1p-16, flush_to_zero ? 2 * kSmallestNormal : 0x1p-134, 0x1p128 - 0x1p120};
  }
  return {};
}

/// Of an operand as it is stated, in units of its step, which a step of 0 is largest / `largest` of.
constexpr FormatRounding rounding_of(OperandFormat format, const OperandRounding& own, bool flush_to_zero) {
  FormatRounding rounding = rounding_of(format, flush_to_zero);
  if (own == OperandRounding()) return rounding;
  // Two small parts that are cut have 2^-7 each.
  const double cut = own.directed ? (format == OperandFormat::bf16x3 ? 4 : 2) : 1;
  const double slack = own.step == 1 ? 1 : 1 + own.slack;
  rounding.u *= cut * slack;
  rounding.eta *= cut * slack;
  if (own.power_of_two) {
    switch (format) {
      case OperandFormat::e4m3:  // above 448 it saturates, up to 512
        rounding.u = std::max(rounding.u, 0x1p-3 * slack);
        rounding.largest = 256;
        break;
      case OperandFormat::e5m2: rounding.largest = 0x1p15; break;
      case OperandFormat::e2m1: rounding.largest = 4; break;
      default: rounding.largest /= 2;  // the next power of two
    }
  }
  return rounding;
}

constexpr bool is_integer(OperandFormat format) {
  return format == OperandFormat::int8 || format == OperandFormat::u8 || format == OperandFormat::int4;
}

/// Whether an operand has a step of its own: its rounding is in units of that, whatever the scale.
constexpr bool has_step(OperandFormat format, const OperandRounding& own) {
  return own.step != 1 || is_integer(format);
}

/// Whether weights are held in 8 bits, or multiplied by a factor for that: what they lose isn't small beside them.
constexpr bool narrows_weights(const Rounding& a) {
  return (a.weight_operand > OperandFormat::f16 && a.weight_operand != OperandFormat::bf16x3) || a.weight_factor != 1;
}

/// Of the weights in P*V: by the type that holds them, or on their way into the product. Those that a factor multiplies
/// lose that much less. One that rounds to the largest number of a format with u is as far off as u says.
constexpr FormatRounding rounding_of_weights(const Rounding& a) {
  if (narrows_weights(a)) {
    const FormatRounding own = rounding_of(a.weight_operand, a.weight_rounding, a.flush_to_zero);
    if (a.weight_rounding.step == 0) return {own.u, 0, kInfinity};  // eta is of each group: dynamic_eta
    return {own.u, own.eta / a.weight_factor, own.largest * (1 + (own.u > 0 ? 0x1p-6 : 0x1p-10)) / a.weight_factor};
  }
  if (a.weight_operand != OperandFormat::exact)
    return rounding_of(a.weight_operand, a.weight_rounding, a.flush_to_zero);
  if (!narrower(a.stored_weights, a.accumulator)) return {};
  return {unit_roundoff(a.stored_weights), underflow_unit(a.stored_weights, a.flush_to_zero),
          largest_held(a.stored_weights)};
}

/// What a weight loses whose step is that of a group, relative to the largest weight in that; 0: they have none.
constexpr double dynamic_eta(const Rounding& a) {
  if (a.weight_rounding.step != 0) return 0;
  const FormatRounding own = rounding_of(a.weight_operand, a.weight_rounding, a.flush_to_zero);
  return own.eta / own.largest;
}

/// Whether infinities and NaN stay what they are. In 8 bits they may become the largest number or a zero, and of an
/// infinity in two parts the second is NaN.
constexpr bool keeps_non_finite(OperandFormat format) { return format <= OperandFormat::f16; }

/// How many products stand for one of two operands.
constexpr double products_of(OperandFormat x, OperandFormat y) {
  return x == OperandFormat::bf16x3 || y == OperandFormat::bf16x3 ? 3 : 1;
}

/// Whether steps, directions or means of operands are stated.
constexpr bool states_steps(const Rounding& a) {
  return a.query_rounding != OperandRounding() || a.key_rounding != OperandRounding() ||
         a.value_rounding != OperandRounding() || a.weight_rounding != OperandRounding();
}

/// Whether an operand of a product is rounded on its way.
constexpr bool rounds_operands(const Rounding& a) {
  return a.query_operand != OperandFormat::exact || a.key_operand != OperandFormat::exact ||
         a.value_operand != OperandFormat::exact || a.weight_operand != OperandFormat::exact;
}

/// Whether products are added otherwise than one by one in the accumulator's type.
constexpr bool sums_otherwise(const Rounding& a) {
  return a.score_sum != Sum() || a.value_sum != Sum() || a.weight_sum != Sum();
}

/// Whether exp is stated by more than exp_ulps.
constexpr bool approximates_exp(const Rounding& a) {
  return a.exp_absolute > 0 || a.exp_argument != OperandFormat::exact || a.rescale_ulps >= 0;
}

/// Whether anything is said of softmax attention in its forward pass alone: bounds of gradients and of linear attention
/// say nothing then.
constexpr bool states_products(const Rounding& a) {
  return rounds_operands(a) || states_steps(a) || sums_otherwise(a) || a.score_roundings > 0 ||
         a.output_roundings > 0 || approximates_exp(a);
}

/// The bounds of linear attention are themselves evaluated in float64, in some thousand operations.
inline constexpr double kEvaluation = 1 + 0x1p-38;

/// Roundings of the scale on its way into a score, each relative to the score. In base 2 a score that did not get
/// log2(e) with its scale is multiplied by it: a rounded factor and a product.
constexpr double scale_roundings(const Arithmetic& a) {
  const double to_base2 = a.base2 ? 2 : 0, own = a.score_roundings;
  switch (a.scale) {
    case ScalePlacement::score: return 2 + to_base2 + own;
    case ScalePlacement::folded_log2e: return 4 + own;
    case ScalePlacement::split_root: return 5 + to_base2 + own;
  }
  return 5 + to_base2 + own;
}

/// Units of roundoff that dividing by the row sum may cost.
constexpr double division_roundings(Division division) {
  switch (division) {
    case Division::ieee: return 1;
    case Division::reciprocal: return 2;
    case Division::opencl_division: return 5;
    case Division::opencl_reciprocal: return 6;
  }
  return 6;
}

/// Steps of the online softmax over `keys` keys; 0 when whole rows are taken in one pass.
inline double blocks_of(const Arithmetic& a, std::int64_t keys) {
  return a.key_block > 0 ? std::ceil(static_cast<double>(keys) / static_cast<double>(a.key_block)) : 0;
}

/// Whether weights are computed a second time, after an online pass for the sum: they are divided before they are
/// stored.
constexpr bool two_passes(const Arithmetic& a) { return a.key_block > 0 && a.normalised_before_storage; }

/// Results of one accumulator, rounded to `stored` unless that is as wide.
struct Storing {
  double u = 0, eta = 0;
  double largest = kInfinity;  ///< beyond it a result becomes an infinity

  Storing() = default;
  Storing(const Arithmetic& a, DType stored) : eta(underflow_unit(stored, a.flush_to_zero)) {
    const bool rounds = narrower(stored, a.accumulator);
    const DType held = rounds ? stored : a.accumulator;
    if (rounds) u = unit_roundoff(stored);
    largest = largest_held(held);
  }

  /// Bound of a stored number: `error` before the store, infinite where it may round to an infinity.
  double bound(double magnitude, double error) const {
    if (error == kInfinity || magnitude + error > largest) return kInfinity;
    return error + u * (magnitude + error) + eta;
  }
};

}  // namespace attest
