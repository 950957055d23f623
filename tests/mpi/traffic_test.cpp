// Which rank has what, and what it sends: numbers that were worked out by hand.
#include "backends/ring/traffic.h"

#include <gtest/gtest.h>

#include <string>

#include "backends/ring/work.h"
#include "reference/options/case_line.h"

namespace attest::ring {
namespace {

TEST(Traffic, KeysAndValuesPassEveryRankButOne) {
  // Of 10 keys ranks have 3, 3, 4: rank 0 sends all but those of rank 1, and so on. 2 key heads, 8 + 4 features, f32.
  const Call call = parse_case("heads=4/2 seq=7x10 dim=8/4");
  EXPECT_EQ(bytes_sent_by(Scheme::ring, call, 0, 3), 2 * (10 - 3) * 12 * 4);
  EXPECT_EQ(bytes_sent_by(Scheme::ring, call, 1, 3), 2 * (10 - 4) * 12 * 4);
  EXPECT_EQ(bytes_sent_by(Scheme::ring, call, 2, 3), 2 * (10 - 3) * 12 * 4);
  const Call half = parse_case("dtype=bf16 batch=3 heads=4/2 seq=7x10 dim=8/4");
  EXPECT_EQ(bytes_sent_by(Scheme::ring, half, 1, 3), 3 * 2 * (10 - 4) * 12 * 2);
}

TEST(Traffic, HeadsGoToThoseThatReadThem) {
  // 4 query heads on 3 ranks: 1, 1, 2, of key heads {0}, {0}, {1}. Rank 0 has 2 of 7 queries and 3 of 10 keys.
  const Call call = parse_case("heads=4/2 seq=7x10 dim=8/4");
  const std::int64_t queries = 3 * 2 * 8 * 4, keys = 2 * 3 * 12 * 4, results = 1 * 5 * (4 + 1) * 4;
  EXPECT_EQ(bytes_sent_by(Scheme::head_parallel, call, 0, 3), queries + keys + results);
}

TEST(Traffic, ResultsGoToRankZero) {
  const Call call = parse_case("batch=2 heads=4/2 seq=1x1000 dim=8/4");
  EXPECT_EQ(bytes_sent_by(Scheme::key_parallel, call, 0, 4), 0);
  EXPECT_EQ(bytes_sent_by(Scheme::key_parallel, call, 3, 4), 2 * 4 * 1 * (4 + 1) * 4);
  const Call wide = parse_case("dtype=f64 seq=3 dim=8");
  EXPECT_EQ(bytes_sent_by(Scheme::key_parallel, wide, 1, 2), 3 * 9 * 8);
}

TEST(Traffic, FewerKeyHeadsThanRanksAreShared) {
  const Call call = parse_case("heads=8/2 seq=64 dim=8");
  EXPECT_EQ(key_heads_of(call, 0, 8), (PositionSpan{0, 1}));
  EXPECT_EQ(key_heads_of(call, 3, 8), (PositionSpan{0, 1}));
  EXPECT_EQ(key_heads_of(call, 4, 8), (PositionSpan{1, 2}));
  EXPECT_EQ(key_heads_of(call, 1, 3), (PositionSpan{0, 2}));  // query heads 2, 3 and 4
  EXPECT_EQ(key_heads_of(parse_case("heads=2 seq=4 dim=8"), 0, 4), (PositionSpan{}));
}

TEST(Traffic, LongPartsGoRoundHeadByHead) {
  EXPECT_EQ(steps_of(Scheme::ring, parse_case("batch=2 heads=8 seq=64 dim=8"), 2).size(), 1u);
  const std::vector<RingStep> steps = steps_of(Scheme::ring, parse_case("heads=2 seq=131072 dim=64"), 2);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[1].groups, (PositionSpan{1, 2}));
  // Every key head of every batch is in exactly one step.
  const Call call = parse_case("batch=3 heads=10/5 seq=8192 dim=64");
  std::int64_t heads = 0;
  for (const RingStep& step : steps_of(Scheme::ring_zigzag, call, 4)) {
    heads += (step.batches.last - step.batches.first) * (step.groups.last - step.groups.first);
  }
  EXPECT_EQ(heads, 3 * 5);
}

TEST(Traffic, RowsAreMergedFromAsManyRunsAsStated) {
  const Call call = parse_case("seq=64 dim=8"), sinks = parse_case("seq=64 dim=8 sinks");
  EXPECT_EQ(merged_runs(Scheme::ring, call, 3), 3);
  EXPECT_EQ(merged_runs(Scheme::ring_zigzag, call, 3), 6);
  EXPECT_EQ(merged_runs(Scheme::key_parallel, call, 3), 3);
  EXPECT_EQ(merged_runs(Scheme::head_parallel, call, 3), 0);
  EXPECT_EQ(merged_runs(Scheme::head_parallel, sinks, 3), 1);
}

TEST(Traffic, ARankOfARingHoldsItsShareAndTwoPartsAtMost) {
  const Call call = parse_case("heads=2 seq=131072 dim=64");
  for (int ranks = 2; ranks <= 4; ++ranks) {
    const Group group{1, ranks, nullptr};  // nothing is sent
    const std::size_t tensor = std::size_t{2} * 131072 * 64 * 4 / static_cast<std::size_t>(ranks),
                      rounding = 2 * 64 * 4;
    const std::size_t share = 4 * tensor, part = 2 * tensor;  // q, k, v and the result; k and v
    const std::size_t held = make_work(Scheme::ring, call, group, 1)->bytes();
    EXPECT_GT(held, share - 4 * rounding) << ranks;
    EXPECT_LE(held, share + 2 * part) << ranks;
  }
}

}  // namespace
}  // namespace attest::ring
