// The suite `axes` walks every number of the table, and so meets the one number at which a kernel is wrong.
#include "harness/cases/axes.h"

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "harness/cases/coverage.h"
#include "harness/cases/suites.h"
#include "harness/search/shrink_case.h"
#include "tests/faulty/tampered.h"
#include "tests/unit/helpers.h"

namespace attest {
namespace {

const std::vector<Problem>& axes() {
  static const std::vector<Problem> problems = axes_problems(0);
  return problems;
}

struct OddNumber {
  const char* what;
  std::function<bool(const Call&)> such;
};

/// Numbers at which nothing in attest is cut.
const std::vector<OddNumber>& odd_numbers() {
  static const std::vector<OddNumber> list = {
      {"1531 keys", [](const Call& p) { return p.key_length == 1531; }},
      {"2999 queries", [](const Call& p) { return p.query_length == 2999; }},
      {"key dim 113", [](const Call& p) { return p.key_dim == 113; }},
      {"value dim 211 in f16", [](const Call& p) { return p.value_dim == 211 && p.dtype == DType::f16; }},
      {"37 heads to a key head", [](const Call& p) { return p.heads_per_group() == 37; }},
      {"a window of 777 to the left", [](const Call& p) { return p.window_left == 777; }},
      {"a window of 613 to the right", [](const Call& p) { return p.window_right == 613; }},
      {"a prefix of 421", [](const Call& p) { return p.prefix == 421; }},
      {"119 sequences", [](const Call& p) { return p.batch == 119; }},
      {"71 documents", [](const Call& p) { return p.segments && p.segments->key.size() == 71; }},
      {"pages of 307", [](const Call& p) { return p.page_size == 307; }},
      {"more than 65,535 heads", [](const Call& p) { return p.query_heads > 65535; }},
  };
  return list;
}

TEST(Axes, FindAKernelThatIsWrongAtOneNumber) {
  for (const OddNumber& odd : odd_numbers()) {
    const auto backend = faulty::wrong_where(odd.such);
    bool found = false;
    for (const Problem& p : axes()) {
      if (!odd.such(p)) continue;
      const Verdict verdict = check_line(case_from_line(print_case(p)), *backend, 1);
      found = found || is_failure(verdict);
      EXPECT_TRUE(is_failure(verdict)) << odd.what << ": " << print_case(p);
      break;
    }
    EXPECT_TRUE(found) << odd.what;
  }
}

/// What the suite is for: the suites of chosen sizes have no case that could show most of these.
TEST(Axes, MeetWhatSuitesOfChosenSizesMiss) {
  std::map<std::string, int> met;
  for (const char* suite : {"matrix", "deep"}) {
    for (const Case& one : load_suite(find_suite(suite))) {
      for (const OddNumber& odd : odd_numbers()) met[odd.what] += odd.such(one.problem);
    }
  }
  std::size_t missed = 0;
  for (const OddNumber& odd : odd_numbers()) missed += met[odd.what] == 0;
  EXPECT_GE(missed, 8u);
}

/// Whatever number the table has, walked in three types from its first value on without a gap.
TEST(Axes, WalkEveryNumberOfTheTable) {
  std::map<std::string, std::map<DType, std::set<std::int64_t>>> walked;
  for (const Problem& p : axes()) {
    for (const Option& option : options()) {
      for (const Feature& feature : option.features) {
        if (!feature.value) continue;
        if (const auto n = feature.value(p)) walked[feature.name][p.call.dtype].insert(*n);
      }
    }
  }
  std::size_t numbers = 0;
  for (const Option& option : options()) {
    for (const Feature& feature : option.features) {
      if (feature.ranges.empty()) continue;
      ++numbers;
      for (const DType type : {DType::f32, DType::f16, DType::bf16}) {
        std::int64_t next = feature.ranges.front().first;
        for (const std::int64_t n : walked[feature.name][type]) next += n == next;
        EXPECT_GE(next, 250) << feature.name << " in " << name_of(type);
      }
    }
  }
  EXPECT_GE(numbers, 15u);
  EXPECT_GE(*walked["keys"][DType::bf16].rbegin(), 65537);
  EXPECT_GE(*walked["batch"][DType::f16].rbegin(), 65537);
}

TEST(Axes, AreCanonicalAndCheap) {
  std::set<std::string> lines;
  for (const Problem& p : axes()) {
    const std::string line = print_case(p);
    EXPECT_TRUE(lines.insert(line).second) << line;
    if (lines.size() % 97 != 0) continue;
    EXPECT_EQ(parse_case(line), p) << line;
  }
  EXPECT_GT(lines.size(), 30000u);
  EXPECT_LT(lines.size(), 80000u);
}

TEST(Axes, AnotherSeedDrawsOtherNumbersBeyondTheWalks) {
  std::set<std::string> first, other;
  for (const Problem& p : axes()) first.insert(print_case(p));
  for (const Problem& p : axes_problems(1)) other.insert(print_case(p));
  std::size_t fresh = 0;
  for (const std::string& line : other) fresh += !first.contains(line);
  EXPECT_GT(fresh, 10u);
  EXPECT_LT(fresh, 500u);
}

}  // namespace
}  // namespace attest
