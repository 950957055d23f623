// What surrounds a smallest failing case.
#include "harness/search/neighbours.h"

#include <algorithm>
#include <set>

#include "harness/search/shrink_case.h"
#include "reference/options/case_line.h"
#include "reference/options/options.h"
#include "tests/faulty/tampered.h"
#include "tests/unit/helpers.h"

namespace attest {
namespace {

bool holds(const std::vector<std::string>& list, const std::string& word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

/// Fails wherever the case is causal or has two heads, and refuses f64.
Verdict judged(const Problem& p) {
  Verdict verdict;
  const bool fails = p.call.causal || p.call.query_heads > 1;
  verdict.status = p.call.dtype == DType::f64 ? Status::refused : fails ? Status::fail : Status::pass;
  return verdict;
}

TEST(Neighbours, AreOneStepAwayAndToldByTheirWords) {
  const Problem smallest = parse_case("seq=1 dim=1");
  std::set<std::string> lines;
  const auto check = [&](const Problem& p) {
    EXPECT_TRUE(lines.insert(print_case(p)).second) << print_case(p);
    return judged(p);
  };
  const Neighbours found = neighbours_of(smallest, check, [] { return true; });
  EXPECT_TRUE(found.finished);
  EXPECT_FALSE(lines.contains(print_case(smallest)));
  EXPECT_TRUE(holds(found.failing, "heads=2"));
  EXPECT_TRUE(holds(found.failing, "causal"));
  EXPECT_TRUE(holds(found.refused, "dtype=f64"));
  const std::string softcap = "softcap=" + find_option("softcap")->samples.front();
  for (const std::string& word : {std::string("batch=2"), std::string("seq=2"), std::string("seq=1x2"),
                                  std::string("dim=2"), std::string("dtype=f16"), softcap}) {
    EXPECT_TRUE(holds(found.right, word)) << word;
  }
  const std::string text = text_of(found);
  EXPECT_NE(text.find("fails as well with: "), std::string::npos) << text;
  EXPECT_NE(text.find(" more\n"), std::string::npos) << text;
}

TEST(Neighbours, EndWithTheTime) {
  int left = 3;
  const Neighbours found = neighbours_of(parse_case("seq=1 dim=1"), judged, [&] { return left-- > 0; });
  EXPECT_FALSE(found.finished);
  EXPECT_EQ(found.failing.size() + found.right.size() + found.refused.size(), 3u);
}

TEST(Neighbours, WhatASmallestCaseDoesNotNeedIsNamed) {
  const Problem failing = parse_case("heads=2 seq=3 dim=4 causal softcap=2 dtype=f16");
  EXPECT_EQ(options_not_needed(failing, parse_case("seq=2 dim=1 softcap=2")),
            (std::vector<std::string>{"dtype", "causal"}));
  EXPECT_TRUE(options_not_needed(failing, failing).empty());
  // With a backend that forgets the cap: neither heads nor the mask are needed for that.
  const BackendSet set(faulty::tampered_backends(), {"softcap_dropped"}, {1, ""});
  const ShrunkCase small =
      shrink_case(case_from_line("heads=2 seq=3 dim=4 causal softcap=2"), *set.all().front(), 1, 10);
  EXPECT_TRUE(holds(small.verdict.not_needed, "causal")) << small.verdict.case_line;
  EXPECT_FALSE(holds(small.verdict.not_needed, "softcap")) << small.verdict.case_line;
}

}  // namespace
}  // namespace attest
