// The formats of numbers: one row for each type that a tensor may have. Sizes, ranges, roundings and names in files
// and interfaces follow from it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include "reference/base/names.h"

namespace attest {

/// Floating types of 16 bits and more first; then what else q, k and v may be stored in. A boolean is a byte, 0 or 1;
/// i32 counts and numbers things; e8m0 is a type of scales alone.
enum class DType : std::uint8_t { f64, f32, f16, bf16, e4m3, e5m2, i8, e2m1, i4, boolean, i32, e8m0 };

/// What the codes of a floating format with the largest exponent mean.
enum class TopCodes : std::uint8_t {
  infinity_and_nan,  ///< as in IEEE 754: an infinity where the mantissa is 0, else a NaN
  one_nan,           ///< numbers, but for the one with all bits of the mantissa, a NaN: there is no infinity
  numbers,           ///< numbers
};

/// Codes of DLPack's types (DLDataTypeCode).
enum class DlpackCode : std::uint8_t {
  integer = 0,
  unsigned_integer = 1,
  floating = 2,
  bfloat = 4,
  boolean = 6,
  float8_e4m3fn = 10,
  float8_e5m2 = 12,
  float8_e8m0fnu = 14,
  float4_e2m1fn = 17,
};

struct Format {
  DType type;
  std::string_view name;  ///< in case lines
  int bits = 0;           ///< of an element; those of 4 bits lie two to a byte, the first in its lower half
  int exponent_bits = 0;  ///< 0 of what is no floating type
  int mantissa_bits = 0;  ///< stored ones, without the leading bit; 0 of powers of two, which have no sign and no zero
  TopCodes top{};
  std::string_view safetensors;  ///< in a file
  std::string_view numpy;
  DlpackCode dlpack{};
  int since = 1;  ///< version of the contract that it came with (backends/backend.h)
};

// clang-format off
inline constexpr std::array kFormats = {
    Format{DType::f64, "f64", 64, 11, 52, TopCodes::infinity_and_nan, "F64", "float64", DlpackCode::floating},
    Format{DType::f32, "f32", 32, 8, 23, TopCodes::infinity_and_nan, "F32", "float32", DlpackCode::floating},
    Format{DType::f16, "f16", 16, 5, 10, TopCodes::infinity_and_nan, "F16", "float16", DlpackCode::floating},
    Format{DType::bf16, "bf16", 16, 8, 7, TopCodes::infinity_and_nan, "BF16", "bfloat16", DlpackCode::bfloat},
    Format{DType::e4m3, "e4m3", 8, 4, 3, TopCodes::one_nan, "F8_E4M3", "float8_e4m3fn", DlpackCode::float8_e4m3fn, 9},
    Format{DType::e5m2, "e5m2", 8, 5, 2, TopCodes::infinity_and_nan, "F8_E5M2", "float8_e5m2", DlpackCode::float8_e5m2, 9},
    Format{DType::i8, "i8", 8, 0, 0, {}, "I8", "int8", DlpackCode::integer, 9},
    Format{DType::e2m1, "e2m1", 4, 2, 1, TopCodes::numbers, "F4", "float4_e2m1fn", DlpackCode::float4_e2m1fn, 9},
    Format{DType::i4, "i4", 4, 0, 0, {}, "I4", "int4", DlpackCode::integer, 9},
    Format{DType::boolean, "bool", 8, 0, 0, {}, "BOOL", "bool", DlpackCode::boolean},
    Format{DType::i32, "i32", 32, 0, 0, {}, "I32", "int32", DlpackCode::integer},
    Format{DType::e8m0, "e8m0", 8, 8, 0, TopCodes::one_nan, "F8_E8M0", "float8_e8m0fnu", DlpackCode::float8_e8m0fnu, 9},
};
// clang-format on

namespace detail {

/// The row of a type. A number that is no type gets the last one: the compiler can't see that there is none.
constexpr std::size_t row_of(DType type) { return std::min(static_cast<std::size_t>(type), kFormats.size() - 1); }

}  // namespace detail

constexpr const Format& format_of(DType type) { return kFormats[detail::row_of(type)]; }
constexpr bool is_floating(DType type) { return format_of(type).exponent_bits > 0; }
/// Whether two elements lie in each byte: the element with an even number in the lower half.
constexpr bool is_packed_in_pairs(DType type) { return format_of(type).bits == 4; }
/// Bytes of one element; of those in pairs, of two.
constexpr std::size_t size_of(DType type) {
  return std::max<std::size_t>(static_cast<std::size_t>(format_of(type).bits) / 8, 1);
}
/// Bytes of so many elements, one after another.
constexpr std::size_t bytes_of(DType type, std::size_t elements) {
  return is_packed_in_pairs(type) ? (elements + 1) / 2 : elements * size_of(type);
}

/// Whether q, k and v may be stored in it: what has no name of its own in a case line is none of those.
constexpr bool is_storage(DType type) { return type < DType::boolean; }
/// Whether its elements are numbers to compute with.
constexpr bool is_number(DType type) { return is_storage(type) || type == DType::e8m0; }
/// Whether results may have it, and whole calls.
constexpr bool is_wide(DType type) { return is_floating(type) && format_of(type).bits > 8; }

namespace detail {

template <class Is>
constexpr std::size_t count_formats(const Is& is) {
  std::size_t count = 0;
  for (const Format& format : kFormats) count += is(format.type) ? 1 : 0;
  return count;
}

/// A list with what `get` takes out of the first N rows.
template <std::size_t N, class Get>
constexpr auto first_rows(const Get& get) {
  std::array<decltype(get(kFormats[0])), N> list{};
  for (std::size_t n = 0; n < N; ++n) list[n] = get(kFormats[n]);
  return list;
}

constexpr bool formats_in_order() {
  for (std::size_t n = 0; n < kFormats.size(); ++n) {
    const DType type = kFormats[n].type;
    if (static_cast<std::size_t>(type) != n) return false;
    if (is_wide(type) != (n < count_formats(is_wide)) || is_storage(type) != (n < count_formats(is_storage)))
      return false;
  }
  return true;
}
static_assert(formats_in_order(), "a row for each DType, in its order: wide floating types, other storage");

/// 2^exponent, exactly.
constexpr double power_of_two(int exponent) {
  double power = 1;
  for (int n = 0; n < exponent; ++n) power *= 2;
  for (int n = 0; n > exponent; --n) power /= 2;
  return power;
}

}  // namespace detail

template <>
inline constexpr auto kNames<DType> = detail::first_rows<kFormats.size()>([](const Format& f) { return f.name; });
/// Types of results and of whole calls.
inline constexpr auto kWideTypes =
    detail::first_rows<detail::count_formats(is_wide)>([](const Format& f) { return f.type; });
inline constexpr auto kWideNames =
    detail::first_rows<detail::count_formats(is_wide)>([](const Format& f) { return f.name; });
/// Types that q, k and v may be stored in.
inline constexpr auto kStorageTypes =
    detail::first_rows<detail::count_formats(is_storage)>([](const Format& f) { return f.type; });
inline constexpr auto kStorageNames =
    detail::first_rows<detail::count_formats(is_storage)>([](const Format& f) { return f.name; });
/// Types that scales of stored tensors may have.
inline constexpr std::array kScaleTypes = {DType::f64, DType::f32, DType::f16, DType::bf16, DType::e4m3, DType::e8m0};
inline constexpr auto kScaleTypeNames = [] {
  std::array<std::string_view, kScaleTypes.size()> names{};
  for (std::size_t n = 0; n < names.size(); ++n) names[n] = format_of(kScaleTypes[n]).name;
  return names;
}();

/// The exponent of the largest finite number of a floating type, and that of the smallest normal one.
constexpr int exponent_bias(DType type) { return (1 << (format_of(type).exponent_bits - 1)) - 1; }
constexpr int largest_exponent(DType type) {
  return exponent_bias(type) + (format_of(type).top == TopCodes::infinity_and_nan ? 0 : 1);
}
constexpr int smallest_exponent(DType type) { return 1 - exponent_bias(type); }

namespace detail {

struct Limits {
  double unit_roundoff = 1, smallest_normal = 1, smallest_subnormal = 1, largest = 1, lowest = -1;
};
inline constexpr auto kLimits = first_rows<kFormats.size()>([](const Format& f) {
  if (f.exponent_bits == 0) {
    const double largest = f.type == DType::boolean ? 1.0 : power_of_two(f.bits - 1) - 1;
    return Limits{1, 1, 1, largest, f.type == DType::boolean ? 0 : -largest - 1};
  }
  if (f.mantissa_bits == 0) {
    const double smallest = power_of_two(-exponent_bias(f.type));
    return Limits{0.5, smallest, smallest, power_of_two(exponent_bias(f.type)), smallest};
  }
  const int top = largest_exponent(f.type), bottom = smallest_exponent(f.type);
  const double unit = power_of_two(-f.mantissa_bits - 1);
  const double last = f.top == TopCodes::one_nan ? 4 * unit : 2 * unit;  // how far the largest significand is from 2
  const double largest = power_of_two(top) * (2 - last);
  return Limits{unit, power_of_two(bottom), power_of_two(bottom - f.mantissa_bits), largest, -largest};
});
constexpr const Limits& limits_of(DType type) { return kLimits[row_of(type)]; }

}  // namespace detail

/// Unit roundoff: half the distance from 1 to the next number. 1 of what is no floating type.
constexpr double unit_roundoff(DType type) { return detail::limits_of(type).unit_roundoff; }
constexpr double smallest_normal(DType type) { return detail::limits_of(type).smallest_normal; }
constexpr double smallest_subnormal(DType type) { return detail::limits_of(type).smallest_subnormal; }
/// Largest finite number of a type.
constexpr double largest_of(DType type) { return detail::limits_of(type).largest; }
/// The finite number farthest below 0; integers have one more there.
constexpr double lowest_of(DType type) { return detail::limits_of(type).lowest; }

static_assert(largest_of(DType::f64) == std::numeric_limits<double>::max());
static_assert(largest_of(DType::f32) == static_cast<double>(std::numeric_limits<float>::max()));
static_assert(largest_of(DType::f16) == 65504 && largest_of(DType::bf16) == 0x1.fep127);
static_assert(largest_of(DType::e4m3) == 448 && largest_of(DType::e5m2) == 57344 && largest_of(DType::i8) == 127);
static_assert(lowest_of(DType::e4m3) == -448 && lowest_of(DType::i8) == -128 && lowest_of(DType::boolean) == 0);
static_assert(largest_of(DType::e2m1) == 6 && smallest_subnormal(DType::e2m1) == 0.5 && lowest_of(DType::i4) == -8);
static_assert(largest_of(DType::e8m0) == 0x1p127 && lowest_of(DType::e8m0) == 0x1p-127);
static_assert(smallest_subnormal(DType::f64) == 0x1p-1074 && smallest_subnormal(DType::f16) == 0x1p-24);

}  // namespace attest
