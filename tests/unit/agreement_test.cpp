// What ranks have to be at one about.
#include "harness/mpi/agreement.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

#include "tests/unit/complaint.h"
#include "tests/unit/thread_ranks.h"

namespace attest {
namespace {

TEST(Agreement, AStepOfOneProcessIsTheStepAlone) {
  int taken = 0;
  take_together(nullptr, [&] { ++taken; });
  EXPECT_EQ(taken, 1);
  EXPECT_THROW(take_together(nullptr, [] { throw std::logic_error("its own"); }), std::logic_error);
}

TEST(Agreement, WhatFailsOnOneRankFailsOnAll) {
  std::atomic<int> told{0};
  on_ranks(3, [&](Ranks& ranks) {
    const std::string message = complaint<CommonError>([&] {
      take_together(&ranks, [&] {
        if (ranks.rank() == 2) throw UserError("a.cases: can't be read");
      });
    });
    EXPECT_TRUE(message.starts_with("rank 2 on ")) << message;
    EXPECT_TRUE(message.ends_with(": a.cases: can't be read")) << message;
    ++told;
  });
  EXPECT_EQ(told, 3);
}

TEST(Agreement, WhatFailsOnRank0IsItsOwnMessage) {
  on_ranks(2, [](Ranks& ranks) {
    EXPECT_EQ(complaint<CommonError>([&] { take_together(&ranks, [] { throw UserError("a\xff.cases"); }); }),
              "a\xff.cases");
  });
}

TEST(Agreement, FactsMustBeTheSame) {
  on_ranks(2, [](Ranks& ranks) {
    EXPECT_EQ(complaint<CommonError>([&] { require_same(ranks, {{"cases", "1"}, {"words", "2"}}, {}); }), "");
    const std::string message = complaint<CommonError>([&] {
      require_same(ranks, {{"cases", "1"}, {"words", std::to_string(ranks.rank())}}, {{"words", "say the same"}});
    });
    EXPECT_NE(message.find("(1, 0)"), std::string::npos) << "the values: " << message;
    EXPECT_TRUE(message.ends_with("say the same")) << message;
  });
}

TEST(Agreement, FactsOfAllStandBesideEachOther) {
  on_ranks(3, [](Ranks& ranks) {
    const auto facts = facts_of_all(ranks, {{"threads", "1"}, {"processor", ranks.rank() == 1 ? "A" : "B"}});
    EXPECT_EQ(facts, (std::map<std::string, std::string>{{"threads", "1"}, {"processor", "A / B"}}));
  });
}

}  // namespace
}  // namespace attest
