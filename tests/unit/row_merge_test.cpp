// Parts of a row merged one by one. How exact: part_bound_test.cpp.
#include "backends/support/parts/row_merge.h"

#include <gtest/gtest.h>

#include <vector>

namespace attest {
namespace {

using support::RowMerge;

constexpr float kInfinite = std::numeric_limits<float>::infinity();

struct Merged {
  std::vector<float> out;
  float lse = 0;
};

Merged merged(const std::vector<std::pair<std::vector<float>, float>>& parts) {
  Merged row{std::vector<float>(2, 42.f)};
  RowMerge<float> merge(row.out);
  for (const auto& [out, lse] : parts) merge.add(std::span<const float>(out), lse);
  row.lse = merge.finish();
  return row;
}

TEST(RowMerge, OfOnePartIsThePart) {
  const Merged row = merged({{{1, -2}, 3}});
  EXPECT_EQ(row.out, (std::vector<float>{1, -2}));
  EXPECT_EQ(row.lse, 3);
}

TEST(RowMerge, WeighsByTheSumsOfThePart) {
  const Merged row = merged({{{1, 0}, std::log(1.f)}, {{5, 8}, std::log(3.f)}});
  EXPECT_FLOAT_EQ(row.out[0], 4);
  EXPECT_FLOAT_EQ(row.out[1], 6);
  EXPECT_FLOAT_EQ(row.lse, std::log(4.f));
}

/// A row of a causal mask sees nothing of the later parts, whatever those hold for it.
TEST(RowMerge, PartsThatSeeNothingLeaveNoTrace) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Merged row = merged({{{nan, nan}, -kInfinite}, {{1, 2}, 3}, {{nan, kInfinite}, -kInfinite}});
  EXPECT_EQ(row.out, (std::vector<float>{1, 2}));
  EXPECT_EQ(row.lse, 3);
  const Merged nothing = merged({{{nan, nan}, -kInfinite}, {{nan, nan}, -kInfinite}});
  EXPECT_EQ(nothing.out, (std::vector<float>{0, 0}));
  EXPECT_EQ(nothing.lse, -kInfinite);
  EXPECT_EQ(merged({}).out, (std::vector<float>{0, 0}));
}

TEST(RowMerge, LogsumexpsMayBeFarApart) {
  for (const float lse : {700.f, -700.f, 88.f, 3e38f}) {
    EXPECT_EQ(merged({{{1, 2}, lse}, {{9, 9}, lse - 400}}).lse, lse);
    EXPECT_EQ(merged({{{9, 9}, lse > 1e38f ? 0 : lse - 400}, {{1, 2}, lse}}).out, (std::vector<float>{1, 2})) << lse;
  }
}

TEST(RowMerge, NaNStays) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const Merged& row : {merged({{{1, 2}, nan}, {{3, 4}, 5}}), merged({{{3, 4}, 5}, {{1, 2}, nan}})}) {
    EXPECT_TRUE(std::isnan(row.lse));
    EXPECT_TRUE(std::isnan(row.out[0]));
  }
}

}  // namespace
}  // namespace attest
