// The table of formats, and conversions that it gives: held against types of the language and against the two formats
// of 16 bits that have code of their own.
#include "reference/base/format.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "harness/base/data_folder.h"
#include "harness/cases/safetensors.h"
#include "reference/base/view.h"

namespace attest {
namespace {

TEST(Format, NumbersOfTheLanguageHaveTheSameLimits) {
  EXPECT_EQ(unit_roundoff(DType::f64), std::numeric_limits<double>::epsilon() / 2);
  EXPECT_EQ(unit_roundoff(DType::f32), static_cast<double>(std::numeric_limits<float>::epsilon()) / 2);
  EXPECT_EQ(smallest_normal(DType::f64), std::numeric_limits<double>::min());
  EXPECT_EQ(smallest_normal(DType::f32), static_cast<double>(std::numeric_limits<float>::min()));
  EXPECT_EQ(smallest_subnormal(DType::f64), std::numeric_limits<double>::denorm_min());
  EXPECT_EQ(smallest_subnormal(DType::f32), static_cast<double>(std::numeric_limits<float>::denorm_min()));
  EXPECT_EQ(lowest_of(DType::i8), -128) << "one below the largest's negative";
  EXPECT_EQ(lowest_of(DType::e4m3), -448);
  EXPECT_EQ(lowest_of(DType::f32), std::numeric_limits<float>::lowest());
}

TEST(Format, EveryCodeOf16BitsIsReadAsByItsOwnCode) {
  for (unsigned n = 0; n < 65536; ++n) {
    const auto bits = static_cast<std::uint16_t>(n);
    for (const DType type : {DType::f16, DType::bf16}) {
      const double own = static_cast<double>(type == DType::f16 ? f16_to_float(bits) : bf16_to_float(bits));
      const double by_table = decode(bits, type);
      ASSERT_EQ(std::isnan(own), std::isnan(by_table)) << n;
      if (std::isnan(own)) continue;
      ASSERT_EQ(own, by_table) << n;
      ASSERT_EQ(std::signbit(own), std::signbit(by_table)) << n;
      ASSERT_EQ(encode(own, type), bits);
      const double between = own * (1 + unit_roundoff(type));  // a tie, or near one
      ASSERT_EQ(encode(between, type), type == DType::f16 ? to_f16(between) : to_bf16(between)) << n;
    }
  }
}

/// The definition, from the fields of a code: sign, exponent and mantissa.
double by_fields(unsigned code, int mantissa_bits, int bias) {
  const unsigned exponent = (code & 0x7fu) >> mantissa_bits, mantissa = code & ((1u << mantissa_bits) - 1);
  const double fraction = std::ldexp(mantissa, -mantissa_bits);
  const double size =
      exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, static_cast<int>(exponent) - bias);
  return (code & 0x80u) != 0 ? -size : size;
}

TEST(Format, EveryCodeOf8BitsIsItsNumber) {
  for (unsigned code = 0; code < 256; ++code) {
    const auto byte = static_cast<std::uint8_t>(code);
    const double e4m3 = load(&byte, DType::e4m3, 0), e5m2 = load(&byte, DType::e5m2, 0);
    if ((code & 0x7fu) == 0x7fu)
      EXPECT_TRUE(std::isnan(e4m3)) << code;
    else
      EXPECT_EQ(e4m3, by_fields(code, 3, 7)) << code;
    if ((code & 0x7fu) > 0x7cu)
      EXPECT_TRUE(std::isnan(e5m2)) << code;
    else if ((code & 0x7fu) == 0x7cu)
      EXPECT_EQ(e5m2, (code & 0x80u) != 0 ? -kInfinity : kInfinity) << code;
    else
      EXPECT_EQ(e5m2, by_fields(code, 2, 15)) << code;
    EXPECT_EQ(load(&byte, DType::i8, 0), static_cast<std::int8_t>(byte));
    for (const DType type : {DType::e4m3, DType::e5m2, DType::i8}) {
      const double number = load(&byte, type, 0);
      if (std::isnan(number)) continue;
      std::uint8_t again = 0;
      store(&again, type, 0, number);
      EXPECT_EQ(load(&again, type, 0), number) << code;
      EXPECT_EQ(std::signbit(load(&again, type, 0)), std::signbit(number)) << code;
    }
  }
}

TEST(Format, CodesOf4BitsLieTwoToAByte) {
  constexpr double kSizes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  for (unsigned code = 0; code < 16; ++code) {
    const double number = code < 8 ? kSizes[code] : -kSizes[code - 8];
    for (const unsigned other : {0U, 5U, 15U}) {
      // The element with the even number is the lower half.
      const std::uint8_t first[] = {static_cast<std::uint8_t>(other << 4 | code)},
                         second[] = {0x77, static_cast<std::uint8_t>(code << 4 | other)};
      EXPECT_EQ(load(first, DType::e2m1, 0), number);
      EXPECT_EQ(load(second, DType::e2m1, 3), number);
      EXPECT_EQ(std::signbit(load(first, DType::e2m1, 0)), code >= 8);
      EXPECT_EQ(load(second, DType::i4, 3), code < 8 ? static_cast<int>(code) : static_cast<int>(code) - 16);
      // Writing one leaves its neighbour.
      std::uint8_t written[] = {first[0]};
      store(written, DType::e2m1, 0, 1.5);
      EXPECT_EQ(written[0], other << 4 | 3);
      store(written, DType::i4, 1, -2);
      EXPECT_EQ(written[0], 0xe3);
    }
  }
  EXPECT_EQ(bytes_of(DType::i4, 5), 3U);
  EXPECT_EQ(bytes_of(DType::f16, 5), 10U);
}

TEST(Format, ElementsAreReadByTheWayAsByTheirOwnNumber) {
  const std::uint8_t bytes[] = {0x21, 0x43, 0x65, 0xf7, 0xa9, 0xcb};
  for (const Format& format : kFormats) {
    if (!is_number(format.type) || format.bits > 8) continue;
    with_elements(bytes, format.type, [&](auto elements, const auto& number) {
      elements += 2;
      for (std::int64_t n = 0; n < 3; ++n)
        EXPECT_EQ(static_cast<double>(number(elements[n])), load(bytes, format.type, 2 + n)) << format.name;
    });
  }
}

TEST(Format, ScalesOf8BitsArePowersOfTwo) {
  for (unsigned code = 0; code < 255; ++code) {
    const auto byte = static_cast<std::uint8_t>(code);
    EXPECT_EQ(load(&byte, DType::e8m0, 0), std::ldexp(1, static_cast<int>(code) - 127));
  }
  const std::uint8_t last = 255;
  EXPECT_TRUE(std::isnan(load(&last, DType::e8m0, 0)));
  EXPECT_FALSE(is_storage(DType::e8m0)) << "of queries, keys or values";
}

TEST(Format, NumbersOf8BitsAreRoundedToTheNearest) {
  const auto stored = [](double number, DType type) {
    std::uint8_t byte = 0;
    store(&byte, type, 0, number);
    return load(&byte, type, 0);
  };
  for (const DType type : {DType::e4m3, DType::e5m2}) {
    std::vector<double> numbers;  // all finite ones, ascending
    for (unsigned code = 0; code < 256; ++code) {
      const auto byte = static_cast<std::uint8_t>(code);
      if (const double number = load(&byte, type, 0); std::isfinite(number)) numbers.push_back(number);
    }
    std::ranges::sort(numbers);
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
    EXPECT_EQ(numbers.back(), largest_of(type));
    for (std::size_t n = 1; n < numbers.size(); ++n) {
      const double low = numbers[n - 1], high = numbers[n], middle = (low + high) / 2;
      EXPECT_EQ(stored(std::nextafter(middle, low), type), low);
      EXPECT_EQ(stored(std::nextafter(middle, high), type), high);
      const double tie = stored(middle, type), even = std::fmod(std::fabs(tie), 2 * (high - low));
      EXPECT_TRUE(tie == low || tie == high);
      EXPECT_TRUE(even == 0 || std::fabs(tie) == largest_of(type)) << middle << " went to " << tie;
    }
  }
  // Beyond the range: the last tie goes to the even neighbour, which e4m3 has and e5m2 has not.
  EXPECT_EQ(stored(464, DType::e4m3), 448);
  EXPECT_TRUE(std::isnan(stored(464.001, DType::e4m3)) && std::isnan(stored(kInfinity, DType::e4m3)));
  EXPECT_EQ(stored(61439, DType::e5m2), 57344);
  EXPECT_EQ(stored(61440, DType::e5m2), kInfinity);
  EXPECT_EQ(stored(2.5, DType::i8), 2);
  EXPECT_EQ(stored(-3.5, DType::i8), -4);
  EXPECT_EQ(stored(1e9, DType::i8), 127);
  EXPECT_EQ(stored(-kInfinity, DType::i8), -128);
  EXPECT_EQ(stored(kNaN, DType::i8), 0);
}

/// The files have each number, each midpoint and what lies beside them (tests/golden/make_codes.py).
TEST(Format, CodesAreThoseOfOthers) {
  for (const DType type : {DType::e4m3, DType::e5m2, DType::i8, DType::e8m0, DType::e2m1, DType::i4}) {
    const int all = 1 << format_of(type).bits;
    const std::string name(format_of(type).name);
    const TensorFile file = read_safetensors(data_folder("golden") / "codes" / (name + ".safetensors"));
    const FileTensor &numbers = file.tensors.at("numbers"), &codes = file.tensors.at("codes");
    ASSERT_GT(numbers.size(), 3 * (all - 16));
    ASSERT_EQ(static_cast<std::size_t>(numbers.size()), codes.bytes.size());
    std::set<std::uint8_t> seen;
    for (std::int64_t n = 0; n < numbers.size(); ++n) {
      const auto code = static_cast<std::uint8_t>(codes.bytes[static_cast<std::size_t>(n)]);
      std::uint8_t own = 0;
      store(&own, type, 0, numbers.at(n));
      if (std::isnan(numbers.at(n)) && format_of(type).top == TopCodes::numbers)
        EXPECT_EQ(load(&own, type, 0), load(&code, type, 0)) << "zeros of either sign";
      else if (!std::isnan(load(&code, type, 0)))
        EXPECT_EQ(own, code) << name << " of " << numbers.at(n);
      else
        EXPECT_TRUE(std::isnan(load(&own, type, 0))) << name << " of " << numbers.at(n);
      seen.insert(code);
    }
    // All codes but further NaNs.
    EXPECT_GE(seen.size() + (type == DType::e4m3 ? 1 : 0), type == DType::e5m2 ? 251U : static_cast<unsigned>(all))
        << name;
  }
}

TEST(Format, NamesAreUniqueAndFilesKnowThem) {
  std::set<std::string_view> names, of_numpy;
  for (const Format& format : kFormats) {
    EXPECT_TRUE(names.insert(format.name).second) << format.name;
    EXPECT_TRUE(of_numpy.insert(format.numpy).second) << format.numpy;
    const FileType* in_files = find_file_type(format.safetensors);
    ASSERT_TRUE(in_files) << format.name;
    EXPECT_EQ(in_files->bits, static_cast<std::size_t>(format.bits)) << format.name;
    EXPECT_EQ(in_files->stored.has_value(), is_number(format.type)) << format.name;
  }
}

}  // namespace
}  // namespace attest
