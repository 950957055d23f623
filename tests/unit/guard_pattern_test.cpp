// Unwritten storage is told from any number that somebody computed.
#include "harness/cases/guard_pattern.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "reference/base/view.h"

namespace attest {
namespace {

TEST(GuardPattern, IsANanOfEveryType) {
  for (const DType type : kWideTypes) {
    std::vector<std::byte> bytes(3 * size_of(type));
    fill_pattern(bytes, type);
    for (std::size_t n = 0; n < 3; ++n) {
      EXPECT_TRUE(is_pattern(bytes.data(), type, n)) << name_of(type);
      EXPECT_TRUE(std::isnan(load(bytes.data(), type, static_cast<std::int64_t>(n)))) << name_of(type);
    }
  }
}

TEST(GuardPattern, IsNoValueThatIsStored) {
  for (const DType type : kWideTypes) {
    for (const double value : {0.0, -0.0, 1.0, kNaN, -kNaN, kInfinity, largest_of(type)}) {
      std::vector<std::byte> bytes(3 * size_of(type));
      fill_pattern(bytes, type);
      store(bytes.data(), type, 1, value);
      EXPECT_TRUE(is_pattern(bytes.data(), type, 0));
      EXPECT_FALSE(is_pattern(bytes.data(), type, 1)) << name_of(type) << " " << value;
      EXPECT_TRUE(is_pattern(bytes.data(), type, 2));
    }
  }
}

TEST(GuardPattern, CountsWhatIsWrittenAlongARow) {
  for (const DType type : kWideTypes) {
    std::vector<std::byte> bytes(40 * size_of(type));
    fill_pattern(bytes, type);
    for (const std::int64_t at : {3, 4, 5, 9, 30}) store(bytes.data(), type, at, 1);
    EXPECT_EQ(count_written(bytes.data(), type, 0, 40, 1), 5) << name_of(type);
    EXPECT_EQ(count_written(bytes.data(), type, 4, 26, 1), 3) << name_of(type);
    EXPECT_EQ(count_written(bytes.data(), type, 0, 14, 3), 3) << name_of(type);  // 3, 9 and 30
    EXPECT_EQ(count_written(bytes.data(), type, 3, 0, 1), 0) << name_of(type);
  }
}

TEST(GuardPattern, LeavesBytesThatAreNoElement) {
  std::vector<std::byte> bytes(7, std::byte{9});
  fill_pattern(bytes, DType::f32);
  EXPECT_TRUE(is_pattern(bytes.data(), DType::f32, 0));
  for (std::size_t n = 4; n < 7; ++n) EXPECT_EQ(bytes[n], std::byte{9});
}

}  // namespace
}  // namespace attest
