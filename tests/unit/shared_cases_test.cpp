// Cases handed out to ranks.
#include "harness/run/shared_cases.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <set>

#include "harness/base/interrupted.h"
#include "tests/unit/thread_ranks.h"

namespace attest {
namespace {

Verdict verdict_on(std::size_t number) {
  Verdict verdict;
  verdict.case_line = "seq=1 dim=1";
  verdict.backend = "mine \xff";  // no UTF-8
  verdict.repro = "attest check";
  verdict.number = static_cast<std::int64_t>(number) + 1;
  verdict.status = Status::pass;
  return verdict;
}

/// What rank 0 was told, and who checked what.
struct Told {
  std::vector<std::int64_t> numbers;
  std::multiset<std::string> problems;
  std::vector<std::size_t> started;
  std::mutex mutex;
  std::vector<std::pair<int, std::size_t>> checked;  ///< rank and case
};

SharedCases cases_for(const Ranks& ranks, Told& told, std::vector<std::size_t> order) {
  SharedCases cases;
  cases.check = [&told, rank = ranks.rank()](std::size_t number, const CaseSink& sink) {
    {
      const std::lock_guard lock(told.mutex);
      told.checked.emplace_back(rank, number);
    }
    sink.verdict(verdict_on(number));
    if (number == 3) sink.problem("3 is odd");
  };
  cases.exit_messages = [rank = ranks.rank()] { return std::vector{"rank " + std::to_string(rank) + " says goodbye"}; };
  cases.order = std::move(order);
  cases.started = [&told](std::size_t number) { told.started.push_back(number); };
  cases.sink = {[&told](const Verdict& v) {
                  EXPECT_EQ(v.backend, "mine \xff");
                  told.numbers.push_back(v.number);
                },
                [&told](const std::string& problem) { told.problems.insert(problem); }};
  cases.stop = [] { return false; };
  return cases;
}

TEST(SharedCases, EachIsCheckedOnceAndToldToRank0) {
  for (const int size : {1, 2, 5}) {
    Told told;
    std::vector<std::size_t> order;
    for (std::size_t n = 0; n < 40; ++n) order.push_back(39 - n);
    on_ranks(size, [&](Ranks& ranks) { EXPECT_TRUE(share_cases(ranks, cases_for(ranks, told, order))); });
    EXPECT_EQ(std::set<std::int64_t>(told.numbers.begin(), told.numbers.end()).size(), 40u);
    EXPECT_EQ(told.numbers.size(), 40u);
    EXPECT_EQ(told.checked.size(), 40u);
    EXPECT_EQ(told.started.size(), size == 1 ? 40u : told.started.size());
    EXPECT_EQ(told.problems.count("3 is odd"), 1u);
    EXPECT_EQ(told.problems.size(), static_cast<std::size_t>(size)) << "exit messages are those of ranks above 0";
  }
}

/// Otherwise a rank that dies would take more with it than the case that it was at.
TEST(SharedCases, NothingIsHandedToARankBeforeRank0HasWhatItFoundLast) {
  Told told;
  std::atomic<std::size_t> sent{0}, arrived{0};
  std::atomic<bool> early{false};
  on_ranks(2, [&](Ranks& ranks) {
    SharedCases cases = cases_for(ranks, told, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
    cases.sink.verdict = [&](const Verdict&) { ++arrived; };
    cases.check = [&, rank = ranks.rank()](std::size_t number, const CaseSink& sink) {
      while (rank == 0 && sent < 5) std::this_thread::yield();
      if (rank == 0) return;
      if (arrived != sent) early = true;
      ++sent;
      sink.verdict(verdict_on(number));
    };
    share_cases(ranks, cases);
  });
  EXPECT_GE(sent, 5u);
  EXPECT_EQ(arrived, sent);
  EXPECT_FALSE(early);
}

TEST(SharedCases, NothingMoreIsHandedOutAfterStop) {
  Told told;
  std::vector<std::size_t> order(1000);
  on_ranks(2, [&](Ranks& ranks) {
    SharedCases cases = cases_for(ranks, told, order);
    cases.check = [](std::size_t number, const CaseSink& sink) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      sink.verdict(verdict_on(number));
    };
    cases.stop = [&] { return told.numbers.size() >= 3; };
    EXPECT_TRUE(share_cases(ranks, cases));
  });
  EXPECT_GE(told.numbers.size(), 3u);
  EXPECT_LT(told.numbers.size(), 1000u);
}

TEST(SharedCases, WhatACheckThrowsOnRank0IsThrown) {
  Told told;
  EXPECT_THROW(on_ranks(1,
                        [&](Ranks& ranks) {
                          SharedCases cases = cases_for(ranks, told, {1});
                          cases.check = [](std::size_t, const CaseSink&) { throw std::runtime_error("broken"); };
                          share_cases(ranks, cases);
                        }),
               std::runtime_error);
}

/// A launcher leaves a second for files: rank 0 returns although a rank is still at its case.
TEST(SharedCases, AnInterruptIsNotWaitedOut) {
  Told told;
  std::atomic<bool> leave{false};
  on_ranks(2, [&](Ranks& ranks) {
    SharedCases cases = cases_for(ranks, told, {0, 1, 2, 4});
    cases.check = [&, rank = ranks.rank()](std::size_t number, const CaseSink& sink) {
      if (rank == 1) {
        sink.verdict(verdict_on(number));
        interrupted = true;
      }
      while (rank == 0 ? !interrupted : !leave) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    };
    const auto start = std::chrono::steady_clock::now();
    const bool complete = share_cases(ranks, cases);
    if (ranks.rank() > 0) return;
    EXPECT_FALSE(complete);
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
    EXPECT_EQ(told.numbers.size(), 1u) << "what was found before is told";
    leave = true;
  });
  EXPECT_TRUE(interrupted);
  interrupted = false;
}

}  // namespace
}  // namespace attest
