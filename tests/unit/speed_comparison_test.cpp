// The regression gate: intervals that cover as often as they say, and verdicts that follow.
#include "harness/speed/samples/speed_comparison.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace attest {
namespace {

TEST(SpeedComparison, ByHand) {
  // Nine differences of logarithms; with 3 and 3 samples the extremes cover 1 - 2/20.
  const RatioInterval r = compare_samples({1, 2, 4}, {8, 8, 8}, 0.99);
  EXPECT_DOUBLE_EQ(r.ratio, 4);
  EXPECT_DOUBLE_EQ(r.low, 2);
  EXPECT_DOUBLE_EQ(r.high, 8);
  EXPECT_NEAR(r.confidence, 0.9, 1e-12);
  // Pairs whose neighbours differ more than they do: 1 to 16, always twice.
  const RatioInterval p = compare_pairs({1, 2, 4, 8, 16, 3, 5, 7}, {2, 4, 8, 16, 32, 6, 10, 14}, 0.99);
  EXPECT_DOUBLE_EQ(p.low, 2);
  EXPECT_DOUBLE_EQ(p.high, 2);
  EXPECT_GE(p.confidence, 0.99);
}

TEST(SpeedComparison, Verdicts) {
  EXPECT_EQ(judge({1.2, 1.1, 1.3, 1}, 0.05), SpeedVerdict::slower);
  EXPECT_EQ(judge({0.8, 0.7, 0.9, 1}, 0.05), SpeedVerdict::faster);
  EXPECT_EQ(judge({1.0, 0.97, 1.03, 1}, 0.05), SpeedVerdict::same);
  EXPECT_EQ(judge({1.1, 1.0, 1.2, 1}, 0.05), SpeedVerdict::ambiguous);
}

/// Draws around a base time, with a long tail as timings have it.
std::vector<double> draw(std::mt19937& random, double base, int count) {
  std::lognormal_distribution<double> noise(0, 0.1);
  std::vector<double> list;
  for (int n = 0; n < count; ++n) list.push_back(base * noise(random));
  return list;
}

TEST(SpeedComparison, IntervalsCoverAsOftenAsTheySay) {
  std::mt19937 random(5);
  for (int count : {8, 15, 100}) {
    int missed = 0, missed_pairs = 0;
    for (int n = 0; n < 1000; ++n) {
      const RatioInterval r = compare_samples(draw(random, 1, count), draw(random, 1.3, count), 0.95);
      missed += r.low > 1.3 || r.high < 1.3;
      const RatioInterval p = compare_pairs(draw(random, 1, count), draw(random, 1.3, count), 0.95);
      missed_pairs += p.low > 1.3 || p.high < 1.3;
    }
    EXPECT_LE(missed, 75) << count;
    EXPECT_LE(missed_pairs, 75) << count;
    EXPECT_GE(missed, 15) << count;
    EXPECT_GE(missed_pairs, 15) << count;
  }
}

TEST(SpeedComparison, UnequalCountsCoverAsOftenAsTheySay) {
  std::mt19937 random(8);
  for (const auto& [few, many] : {std::pair{9, 1000}, std::pair{1000, 9}, std::pair{40, 1000}}) {
    int missed = 0;
    for (int n = 0; n < 2000; ++n) {
      const RatioInterval r = compare_samples(draw(random, 1, few), draw(random, 1.3, many), 0.95);
      EXPECT_GE(r.confidence, 0.95);
      missed += r.low > 1.3 || r.high < 1.3;
    }
    EXPECT_LE(missed, 130) << few << " and " << many;
    EXPECT_GE(missed, 30) << few << " and " << many;
  }
}

TEST(SpeedComparison, ARealSlowdownIsFound) {
  std::mt19937 random(6);
  int found = 0;
  for (int n = 0; n < 100; ++n) {
    found += judge(compare_samples(draw(random, 1, 15), draw(random, 1.4, 15), 0.99), 0.05) == SpeedVerdict::slower;
  }
  EXPECT_GE(found, 95);
}

}  // namespace
}  // namespace attest
