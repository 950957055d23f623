// A search on several ranks: parts of their own, put together by rank 0.
#include "harness/run/fuzz_on_ranks.h"

#include "tests/faulty/faulty.h"
#include "tests/unit/helpers.h"
#include "tests/unit/thread_ranks.h"

namespace attest {
namespace {

FuzzSettings settings_for(std::uint64_t count) {
  FuzzSettings settings;
  settings.seconds = 120;
  settings.count = count;
  settings.seed = 3;
  settings.max_operations = 1e5;
  return settings;
}

FuzzResult run_on(int size, std::uint64_t count, std::uint64_t* told_cases = nullptr) {
  FuzzResult result;
  on_ranks(size, [&](Ranks& ranks) {
    const BackendSet backends(faulty::faulty_backends(), {"missing_scale"}, {1, ""});
    const auto tell = [&](const FuzzResult& so_far) {
      if (told_cases) *told_cases = so_far.cases;
    };
    SharedFuzz shared = fuzz_on_ranks(ranks, *backends.all().front(), settings_for(count), tell);
    EXPECT_TRUE(shared.complete);
    if (ranks.rank() == 0) result = std::move(shared.result);
  });
  return result;
}

TEST(FuzzOnRanks, OneRankFindsWhatAProcessFinds) {
  const BackendSet backends(faulty::faulty_backends(), {"missing_scale"}, {1, ""});
  const FuzzResult alone = fuzz(*backends.all().front(), settings_for(60), [](const FuzzResult&) {});
  const FuzzResult shared = run_on(1, 60);
  EXPECT_EQ(shared.cases, 60u);
  EXPECT_EQ(shared.failed, alone.failed);
  EXPECT_EQ(shared.pairs, alone.pairs);
  EXPECT_EQ(shared.classes, alone.classes);
}

TEST(FuzzOnRanks, TheSameSeedAndRanksTheSameCases) {
  std::uint64_t told = 0;
  const FuzzResult one = run_on(3, 61, &told), other = run_on(3, 61);
  EXPECT_EQ(one.cases, 61u) << "21 and 20 and 20";
  EXPECT_GT(told, 0u);
  EXPECT_EQ(one.failed, other.failed);
  EXPECT_EQ(one.pairs, other.pairs);
  EXPECT_EQ(one.classes, other.classes);
  EXPECT_GT(one.failed, 0u);
  ASSERT_FALSE(one.findings.empty());
  EXPECT_TRUE(is_failure(one.findings.front().small.verdict));
  EXPECT_FALSE(one.findings.front().small.source.label.empty());
}

TEST(FuzzOnRanks, FewerCasesThanRanks) { EXPECT_EQ(run_on(4, 2).cases, 2u); }

/// Aimed at different classes, with different draws: more together than one of them.
TEST(FuzzOnRanks, PartsAreDifferent) {
  const BackendSet backends(faulty::faulty_backends(), {"correct"}, {1, ""});
  std::vector<FuzzResult> parts;
  for (const std::uint64_t part : {0u, 1u}) {
    FuzzSettings settings = settings_for(60);
    settings.part = part;
    settings.parts = 2;
    parts.push_back(fuzz(*backends.all().front(), settings, [](const FuzzResult&) {}));
  }
  FuzzResult all = parts[0];
  add_part(all, parts[1]);
  EXPECT_EQ(all.cases, 120u);
  EXPECT_EQ(all.closest, std::max(parts[0].closest, parts[1].closest));
  EXPECT_GT(all.classes.size(), parts[0].classes.size() + parts[1].classes.size() / 4);
  EXPECT_LE(all.classes.size(), parts[0].classes.size() + parts[1].classes.size());
}

}  // namespace
}  // namespace attest
