// Storage in 16 bits and less: IEEE binary16 (f16), the upper half of binary32 (bf16), and any other split of the bits
// that the table of formats has. Converted exactly on reading and rounded to nearest, ties to even, on writing. From
// double in one step: rounding twice could miss a tie.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "reference/base/format.h"

namespace attest {

/// Exact.
constexpr float f16_to_float(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16, rest = bits & 0x7fffu;
  if (rest >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | ((rest & 0x3ffu) << 13));
  if (rest < 0x0400u) {  // subnormal: a multiple of 2^-24
    const float magnitude = static_cast<float>(rest) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
  }
  return std::bit_cast<float>(sign | ((rest << 13) + 0x38000000u));
}

/// Exact.
constexpr float bf16_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

namespace detail {

/// The upper bits of a positive finite double as a small float with `mantissa` bits and exponents from `min_exponent`
/// on (of the smallest normal number); `infinity` when it rounds beyond the range.
constexpr std::uint16_t round_small_float(double value, int mantissa, int min_exponent, std::uint16_t infinity) {
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(value);
  const int exponent = static_cast<int>(bits >> 52) - 1023;
  if (exponent < min_exponent - mantissa - 1) return 0;  // below half of the smallest subnormal
  const std::uint64_t significand = (bits & 0xfffffffffffffULL) | 0x10000000000000ULL;
  const int dropped = 52 - mantissa + (exponent < min_exponent ? min_exponent - exponent : 0);
  std::uint64_t kept = significand >> dropped;
  const std::uint64_t rest = significand & ((std::uint64_t{1} << dropped) - 1),
                      half = std::uint64_t{1} << (dropped - 1);
  if (rest > half || (rest == half && (kept & 1) != 0)) ++kept;
  // A normal number's significand carries its leading bit, which adds one to the exponent field.
  const int biased = exponent < min_exponent ? 0 : exponent - min_exponent;
  const std::uint64_t result = (static_cast<std::uint64_t>(biased) << mantissa) + kept;
  return result >= infinity ? infinity : static_cast<std::uint16_t>(result);
}

constexpr std::uint16_t to_small_float(double value, int mantissa, int min_exponent, std::uint16_t infinity) {
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 48 & 0x8000u);
  const double magnitude = std::bit_cast<double>(bits & 0x7fffffffffffffffULL);
  if (magnitude != magnitude) return static_cast<std::uint16_t>(sign | infinity | (1u << (mantissa - 1)));
  if (std::bit_cast<std::uint64_t>(magnitude) == 0x7ff0000000000000ULL)
    return static_cast<std::uint16_t>(sign | infinity);
  return static_cast<std::uint16_t>(sign | round_small_float(magnitude, mantissa, min_exponent, infinity));
}

}  // namespace detail

/// A number of a floating format of 16 bits or less, from its code, exactly.
constexpr double decode(std::uint16_t code, DType type) {
  const Format& format = format_of(type);
  const int mantissa = format.mantissa_bits;
  if (mantissa == 0) {  // of e8m0, a power of two or NaN
    return code == 0xff ? std::bit_cast<double>(0x7ff8000000000000u)
                        : std::bit_cast<double>(static_cast<std::uint64_t>(code + 1023 - exponent_bias(type)) << 52);
  }
  const std::uint32_t size = code & ((1u << (format.bits - 1)) - 1);  // without the sign
  const std::uint32_t field = size & ((1u << mantissa) - 1), exponent = size >> mantissa;
  const std::uint64_t sign = static_cast<std::uint64_t>(code >> (format.bits - 1)) << 63;
  const bool is_top = exponent == (1u << format.exponent_bits) - 1;
  const bool is_number =
      !is_top || format.top == TopCodes::numbers || (format.top == TopCodes::one_nan && field != (1u << mantissa) - 1);
  if (!is_number)
    return std::bit_cast<double>(sign | 0x7ff0000000000000u | static_cast<std::uint64_t>(field) << (52 - mantissa));
  const double magnitude = exponent == 0 ? field * smallest_subnormal(type)
                                         : ((1u << mantissa) + field) * smallest_subnormal(type) *
                                               detail::power_of_two(static_cast<int>(exponent) - 1);
  return sign == 0 ? magnitude : -magnitude;
}
/// The power of two nearest to a positive number, of two the larger one; 0xff, NaN, of others and beyond the range.
constexpr std::uint16_t encode_power(double value) {
  if (!(value > 0) || value >= 0x1.8p127) return 0xff;
  if (value <= 0x1p-127) return 0;
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(value);
  return static_cast<std::uint16_t>((bits >> 52) - 1023 + 127 + (bits >> 51 & 1));
}

/// The code of a number, rounded to nearest. What rounds beyond the range is infinite, or NaN where the format has no
/// infinity; a writer that saturates clamps before. A format of numbers alone saturates, and NaN becomes 0 there.
constexpr std::uint16_t encode(double value, DType type) {
  const Format& format = format_of(type);
  const int mantissa = format.mantissa_bits;
  if (mantissa == 0) return encode_power(value);
  if (format.top == TopCodes::numbers)
    value = value != value ? 0 : std::clamp(value, lowest_of(type), largest_of(type));
  const auto top = static_cast<std::uint16_t>(((1u << format.exponent_bits) - 1) << mantissa);
  const auto all = static_cast<std::uint16_t>(top | ((1u << mantissa) - 1));
  const bool has_infinity = format.top == TopCodes::infinity_and_nan;
  const std::uint16_t code = detail::to_small_float(value, mantissa, smallest_exponent(type), has_infinity ? top : all);
  const auto size = static_cast<std::uint16_t>(code & 0x7fffu);
  const auto sign = static_cast<std::uint16_t>((code >> 15) << (format.bits - 1));
  return static_cast<std::uint16_t>(sign | size);
}

constexpr std::uint16_t to_f16(double value) { return detail::to_small_float(value, 10, -14, 0x7c00u); }
constexpr std::uint16_t to_bf16(double value) { return detail::to_small_float(value, 7, -126, 0x7f80u); }

/// The nearest integer of 8 or 4 bits, ties to even; of a NaN 0.
constexpr std::int8_t to_small_integer(double value, DType type) {
  if (value != value) return 0;
  value = std::clamp(value, lowest_of(type), largest_of(type));
  constexpr double kShift = 0x1.8p52;  // adding it leaves no bits for fractions
  return static_cast<std::int8_t>((value + kShift) - kShift);
}

}  // namespace attest
