// The table of formats, and conversions that it gives: held against types of the language and against the two formats
// of 16 bits that have code of their own.
#include "reference/base/format.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

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
}

TEST(Format, EveryCodeOf16BitsIsReadAsByItsOwnCode) {
  for (unsigned n = 0; n < 65536; ++n) {
    const auto bits = static_cast<std::uint16_t>(n);
    for (const DType type : {DType::f16, DType::bf16}) {
      const double own = static_cast<double>(type == DType::f16 ? f16_to_float(bits) : bf16_to_float(bits));
      const double by_table = half_to_double(bits, type);
      ASSERT_EQ(std::isnan(own), std::isnan(by_table)) << n;
      if (std::isnan(own)) continue;
      ASSERT_EQ(own, by_table) << n;
      ASSERT_EQ(std::signbit(own), std::signbit(by_table)) << n;
      ASSERT_EQ(double_to_half(own, type), bits);
      const double between = own * (1 + unit_roundoff(type));  // a tie, or near one
      ASSERT_EQ(double_to_half(between, type), type == DType::f16 ? to_f16(between) : to_bf16(between)) << n;
    }
  }
}

TEST(Format, NamesAreUniqueAndFilesKnowThem) {
  std::set<std::string_view> names, of_numpy;
  for (const Format& format : kFormats) {
    EXPECT_TRUE(names.insert(format.name).second) << format.name;
    EXPECT_TRUE(of_numpy.insert(format.numpy).second) << format.numpy;
    const FileType* in_files = find_file_type(format.safetensors);
    ASSERT_TRUE(in_files) << format.name;
    EXPECT_EQ(in_files->size, size_of(format.type)) << format.name;
    EXPECT_EQ(in_files->floating.has_value(), is_floating(format.type)) << format.name;
  }
}

}  // namespace
}  // namespace attest
