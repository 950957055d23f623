// Positions dealt out to parts: each once, evenly, in both orders.
#include "backends/support/parts/partition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

namespace attest {
namespace {

using support::PartOrder;
using support::PositionSpan;
using support::spans_of_part;

constexpr PartOrder kOrders[] = {PartOrder::contiguous, PartOrder::zigzag};

TEST(Partition, HasEveryPositionOnce) {
  for (const PartOrder order : kOrders) {
    for (std::int64_t parts = 1; parts <= 16; ++parts) {
      for (const std::int64_t length : {0, 1, 2, 3, 5, 7, 15, 16, 17, 31, 33, 64, 100}) {
        std::vector<int> met(static_cast<std::size_t>(length));
        for (std::int64_t part = 0; part < parts; ++part) {
          std::int64_t end = -1;
          for (const PositionSpan& span : spans_of_part(length, part, parts, order)) {
            EXPECT_GT(span.first, end) << "ascending, and not touching";
            EXPECT_LT(span.first, span.last);
            end = span.last;
            for (std::int64_t i = span.first; i < span.last; ++i) ++met[static_cast<std::size_t>(i)];
          }
        }
        EXPECT_EQ(std::count(met.begin(), met.end(), 1), length) << parts << " parts of " << length;
      }
    }
  }
}

TEST(Partition, PartsAreOfTheSameSize) {
  for (const PartOrder order : kOrders) {
    for (std::int64_t parts = 1; parts <= 16; ++parts) {
      std::int64_t least = 1000, most = 0;
      for (std::int64_t part = 0; part < parts; ++part) {
        std::int64_t size = 0;
        for (const PositionSpan& span : spans_of_part(101, part, parts, order)) size += span.last - span.first;
        least = std::min(least, size);
        most = std::max(most, size);
      }
      EXPECT_LE(most - least, order == PartOrder::zigzag ? 2 : 1) << parts;
    }
  }
}

TEST(Partition, KnowsBothOrders) {
  EXPECT_EQ(spans_of_part(12, 1, 3, PartOrder::contiguous), (std::vector<PositionSpan>{{4, 8}}));
  EXPECT_EQ(spans_of_part(12, 0, 3, PartOrder::zigzag), (std::vector<PositionSpan>{{0, 2}, {10, 12}}));
  EXPECT_EQ(spans_of_part(12, 1, 3, PartOrder::zigzag), (std::vector<PositionSpan>{{2, 4}, {8, 10}}));
  EXPECT_EQ(spans_of_part(12, 2, 3, PartOrder::zigzag), (std::vector<PositionSpan>{{4, 8}})) << "one span";
  EXPECT_TRUE(spans_of_part(1, 0, 3, PartOrder::contiguous).empty()) << "a length too short for all";
}

/// Of a causal mask the last contiguous part has almost twice the mean to do; zigzag parts have all the same.
TEST(Partition, ZigzagPartsHaveAsMuchToDoUnderACausalMask) {
  const auto pairs = [](std::int64_t part, PartOrder order) {
    std::int64_t sum = 0;
    for (const PositionSpan& span : spans_of_part(64, part, 4, order)) {
      for (std::int64_t i = span.first; i < span.last; ++i) sum += i + 1;
    }
    return sum;
  };
  for (std::int64_t part = 0; part < 4; ++part) EXPECT_EQ(pairs(part, PartOrder::zigzag), 65 * 64 / 2 / 4) << part;
  EXPECT_GT(pairs(3, PartOrder::contiguous), 1.7 * 65 * 64 / 2 / 4);
}

TEST(Partition, LongSequencesDoNotOverflow) {
  const std::int64_t longest = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(spans_of_part(longest, 15, 16, PartOrder::contiguous).back().last, longest);
  EXPECT_EQ(spans_of_part(longest, 0, 16, PartOrder::zigzag).back().last, longest);
}

}  // namespace
}  // namespace attest
