// Threads of ranks, and processors that they share.
#include "harness/mpi/processors.h"

#include <gtest/gtest.h>

#include "tests/unit/thread_ranks.h"

namespace attest {
namespace {

TEST(Processors, ThoseOfAHostAreShared) {
  const std::vector<RankPlace> places = {{"a", {0, 1, 2, 3}, 1}, {"a", {0, 1, 2, 3}, 1}, {"b", {0, 1, 2, 3}, 1}};
  EXPECT_EQ(fair_threads(places, 0), 2);
  EXPECT_EQ(fair_threads(places, 2), 4);
}

TEST(Processors, ABoundRankHasItsOwn) {
  const std::vector<RankPlace> places = {{"a", {0}, 1}, {"a", {1, 2}, 1}, {"a", {1, 2}, 1}, {"a", {1, 2}, 1}};
  EXPECT_EQ(fair_threads(places, 0), 1);
  EXPECT_EQ(fair_threads(places, 1), 1) << "never none";
}

TEST(Processors, TooManyThreadsAreNamed) {
  EXPECT_FALSE(oversubscription({{"a", {0, 1}, 1}, {"a", {0, 1}, 1}}));
  EXPECT_FALSE(oversubscription({{"a", {0, 1}, 2}, {"b", {0, 1}, 2}})) << "two hosts";
  EXPECT_EQ(oversubscription({{"a", {0, 1}, 2}, {"a", {0, 1}, 2}}), "2 ranks on a have 4 threads on 2 processors");
  EXPECT_EQ(oversubscription({{"b", {0, 1}, 1}, {"a", {5}, 2}}), "1 rank on a has 2 threads on 1 processor");
}

TEST(Processors, MoreThreadsThanARankIsBoundTo) {
  const auto sentence = oversubscription({{"a", {0}, 0}, {"a", {1}, 2}});
  ASSERT_TRUE(sentence);
  EXPECT_NE(sentence->find("rank 1 on a has 2 threads and is bound to 1 processor"), std::string::npos) << *sentence;
}

TEST(Processors, EachRankSaysItsOwn) {
  on_ranks(2, [](Ranks& ranks) {
    const std::vector<RankPlace> places = places_of_ranks(ranks, ranks.rank() + 1);
    ASSERT_EQ(places.size(), 2u);
    EXPECT_EQ(places[0].threads, 1);
    EXPECT_EQ(places[1].threads, 2);
    EXPECT_EQ(places[0].host, places[1].host);
    EXPECT_FALSE(places[0].processors.empty());
  });
}

}  // namespace
}  // namespace attest
