// Filters find what an ECMAScript search finds, on lines of any length. Shards are parts that cost about the same.
#include "harness/run/selection.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "harness/base/user_error.h"
#include "harness/cases/case_cost.h"
#include "harness/cases/suites.h"

namespace attest {
namespace {

TEST(Filter, SearchesAnywhere) {
  const std::string text = "eigen batch=2 seq=4x5 dim=4 causal";
  for (const char* found :
       {"", "causal", "^eigen", "causal$", "seq=[34]x", "^eigen .*dim=4 ", "opencl|causal", "\\bdim",
        "(?=.*causal)batch", "(a).*\\1", "(.)(.)=.*\\1", "^(?!opencl)", "e{0,1}igen", "x?"}) {
    EXPECT_TRUE(Filter(found).keeps(text)) << found;
  }
  for (const char* missing :
       {"opencl", "^batch", "seq=4$", "(?=.*opencl)batch", "(z).*\\1", "^(?!eigen)", "^$", "a^"}) {
    EXPECT_FALSE(Filter(missing).keeps(text)) << missing;
  }
  EXPECT_TRUE(Filter("^$").keeps(""));
}

TEST(Filter, WhatIsNoExpressionIsTheUsersError) {
  for (const char* nonsense : {"(", ")(", "a)|(?:b", "[", "*", "a{2", "(.)\\2"}) {
    EXPECT_THROW(Filter{nonsense}, UserError) << nonsense;
  }
  EXPECT_THROW(Filter(std::string(50000, '(') + std::string(50000, ')')), UserError);
}

TEST(Filter, LongLinesHaveAnAnswer) {
  std::string line = "eigen batch=64000 seq=1 dim=1 lengths=1";
  while (line.size() < 128000) line += ",1";
  EXPECT_FALSE(Filter("causal|(.)*x$").keeps(line));
  EXPECT_FALSE(Filter("(1+,?)+x").keeps(line));
  EXPECT_TRUE(Filter("(.)*1$").keeps(line));
  EXPECT_THROW(Filter("(.)\\1*x").keeps(line), UserError);
}

TEST(Filter, NestedRepetitionsHaveAnAnswer) {
  EXPECT_FALSE(Filter("(1+)+x").keeps("eigen seq=" + std::string(60, '1')));
}

/// The costs of each of `count` parts.
std::vector<double> loads(const std::vector<double>& costs, std::size_t count) {
  std::vector<double> sums;
  std::vector<int> met(costs.size());
  for (std::size_t part = 1; part <= count; ++part) {
    const std::vector<bool> own = Shard(std::to_string(part) + "/" + std::to_string(count)).cases_of(costs);
    double& sum = sums.emplace_back();
    for (std::size_t n = 0; n < costs.size(); ++n) {
      met[n] += own[n];
      if (own[n]) sum += costs[n];
    }
  }
  EXPECT_EQ(std::count(met.begin(), met.end(), 1), static_cast<std::ptrdiff_t>(costs.size())) << "each case once";
  return sums;
}

TEST(Shard, TheCostliestGoFirstToThePartThatHasLeast) {
  // 9 | 7 | 5; 4 to the third, 4 to the second: both have more than the first, which takes the 1.
  const std::vector<double> costs = {4, 9, 1, 5, 7, 4};
  EXPECT_EQ(Shard("1/3").cases_of(costs), (std::vector<bool>{false, true, true, false, false, false}));
  EXPECT_EQ(Shard("2/3").cases_of(costs), (std::vector<bool>{false, false, false, false, true, true}));
  EXPECT_EQ(Shard("3/3").cases_of(costs), (std::vector<bool>{true, false, false, true, false, false}));
}

TEST(Shard, EveryCaseIsInOnePart) {
  const std::vector<double> costs = {1, 1, 1, 1, 1};
  EXPECT_EQ(loads(costs, 1), (std::vector<double>{5}));
  EXPECT_EQ(loads(costs, 2), (std::vector<double>{3, 2}));
  EXPECT_EQ(loads(costs, 7), (std::vector<double>{1, 1, 1, 1, 1, 0, 0}));
  EXPECT_TRUE(Shard("1/2").cases_of({}).empty());
  EXPECT_EQ(Shard("").cases_of(costs), std::vector<bool>(5, true));
  EXPECT_TRUE(Shard("").is_first());
  EXPECT_TRUE(Shard("1/2").is_first());
  EXPECT_FALSE(Shard("2/2").is_first());
  EXPECT_EQ(Shard("1000000000/1000000000").cases_of(costs), std::vector<bool>(5)) << "and takes no memory";
}

std::vector<std::string> lines_of(std::size_t count) {
  std::vector<std::string> lines;
  for (std::size_t n = 0; n < count; ++n) lines.push_back("seq=" + std::to_string(n) + " dim=1");
  return lines;
}

TEST(Share, IsAsLargeAsItSaysAndNeverEmpty) {
  const auto taken = [](const std::string& share, std::size_t count, std::uint64_t seed) {
    const std::vector<bool> own = Share(share).cases_of(lines_of(count), seed);
    return std::count(own.begin(), own.end(), true);
  };
  EXPECT_EQ(taken("1/8", 800, 1), 100);
  EXPECT_EQ(taken("3/8", 800, 1), 300);
  EXPECT_EQ(taken("1/8", 801, 1), 101);
  EXPECT_EQ(taken("1/1000", 3, 1), 1);
  EXPECT_EQ(taken("1/8", 0, 1), 0);
  EXPECT_EQ(taken("", 7, 1), 7);
  EXPECT_EQ(taken("5/5", 7, 1), 7);
}

TEST(Share, OfOneSeedIsTheSameAndOfAnotherIsNot) {
  const std::vector<std::string> lines = lines_of(1000);
  const Share share("1/10");
  EXPECT_EQ(share.cases_of(lines, 7), share.cases_of(lines, 7));
  // 200 seeds: every case is met, by chance about 20 times.
  std::vector<int> met(lines.size());
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const std::vector<bool> own = share.cases_of(lines, seed);
    for (std::size_t n = 0; n < own.size(); ++n) met[n] += own[n];
  }
  EXPECT_GE(*std::min_element(met.begin(), met.end()), 1);
  EXPECT_LE(*std::max_element(met.begin(), met.end()), 60);
}

/// Which lines are taken hangs on the lines, not on where they stand.
TEST(Share, DoesNotHangOnTheOrder) {
  std::vector<std::string> lines = lines_of(100);
  const std::vector<bool> own = Share("1/4").cases_of(lines, 3);
  std::reverse(lines.begin(), lines.end());
  std::vector<bool> reversed = Share("1/4").cases_of(lines, 3);
  std::reverse(reversed.begin(), reversed.end());
  EXPECT_EQ(own, reversed);
}

TEST(Share, WhatIsNoneIsTheUsersError) {
  for (const char* nonsense : {"0/4", "5/4", "1", "1/", "/4", "1/0", "-1/4", "1/4 ", "0.1", "1/9999999999"}) {
    EXPECT_THROW(Share{nonsense}, UserError) << nonsense;
  }
}

TEST(Shard, PartsOfSuitesCostTheSame) {
  for (const char* suite : {"matrix", "deep"}) {
    std::vector<double> costs;
    for (const Case& one : load_suite(find_suite(suite))) costs.push_back(cost_of(one.problem));
    const double all = std::accumulate(costs.begin(), costs.end(), 0.0);
    const double largest = *std::max_element(costs.begin(), costs.end());
    for (const std::size_t count : {2, 4, 8, 20}) {
      const std::vector<double> sums = loads(costs, count);
      const double fair = std::max(all / static_cast<double>(count), largest);
      EXPECT_LE(*std::max_element(sums.begin(), sums.end()), 1.01 * fair) << suite << " in " << count;
    }
  }
}

}  // namespace
}  // namespace attest
