// Classes of the table of options: where they are cut, how they are met, and what suites meet of them.
#include "harness/cases/coverage.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "harness/cases/class_cases.h"
#include "harness/cases/suites.h"
#include "reference/options/case_line.h"

namespace attest {
namespace {

/// The class of that feature that a line is in; "" for none.
std::string class_of(const std::string& line, const std::string& feature) {
  for (std::size_t c : classes_of(parse_case(line))) {
    if (classes_of_table()[c].feature->name == feature) return classes_of_table()[c].name();
  }
  return "";
}

Coverage coverage_of(std::initializer_list<const char*> suites) {
  Coverage coverage;
  for (const char* suite : suites) {
    for (const Case& one : load_suite(find_suite(suite))) coverage.meet(one.problem);
  }
  return coverage;
}

TEST(Classes, HaveNamesOfTheirOwnAndBelongToOptions) {
  std::set<std::string> names;
  std::map<std::string, const Option*> features;
  for (const TableClass& one : classes_of_table()) {
    EXPECT_TRUE(names.insert(one.name()).second) << one.name();
    const auto [known, fresh] = features.try_emplace(one.feature->name, one.option);
    EXPECT_TRUE(fresh || known->second == one.option) << one.feature->name;
  }
  for (const Option& option : options()) EXPECT_EQ(option.features.empty(), !option.varies()) << option.key;
}

/// Each cut is met from both of its sides, in every feature that is a number.
TEST(Classes, RangesFollowEachOtherWithoutGaps) {
  int numbers = 0;
  for (const Option& option : options()) {
    for (const Feature& feature : option.features) {
      if (feature.ranges.empty()) continue;
      ++numbers;
      ASSERT_EQ(feature.ranges.size(), feature.classes.size()) << feature.name;
      for (std::size_t n = 0; n + 1 < feature.ranges.size(); ++n) {
        EXPECT_EQ(feature.ranges[n].last + 1, feature.ranges[n + 1].first) << feature.classes[n];
        EXPECT_NE(feature.classes[n], feature.classes[n + 1]);
      }
      EXPECT_EQ(feature.ranges.back().last, Range::kOpen) << feature.name;
    }
  }
  EXPECT_GE(numbers, 15);
}

TEST(Classes, LengthsAreCutAtTilesAndLimitsOfCounters) {
  for (const std::int64_t cut : {0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 32768, 65536}) {
    const auto named = [](std::int64_t n) { return class_of("seq=" + std::to_string(n) + " dim=1", "keys"); };
    if (cut > 0) {
      EXPECT_NE(named(cut - 1), named(cut)) << cut;
    }
    if (cut > 1 && cut < 32768) {
      EXPECT_NE(named(cut), named(cut + 1)) << cut;
    }
  }
  EXPECT_EQ(class_of("seq=5x47 dim=1", "keys"), "keys=33..63");
  EXPECT_EQ(class_of("seq=47x5 dim=1", "queries"), "queries=33..63");
}

TEST(Classes, EndsTellMultiplesAndTheirNeighbours) {
  const std::map<std::int64_t, std::string> ends = {{64, "64n"},       {65, "64n+1"},    {63, "64n-1"}, {17, "16n+1"},
                                                    {15, "16n-1"},     {48, "16n"},      {40, "8n"},    {36, "4n"},
                                                    {34, "odd or 2n"}, {37, "odd or 2n"}};
  for (const auto& [n, end] : ends) {
    EXPECT_EQ(class_of("seq=" + std::to_string(n) + " dim=1", "end of keys"), "end of keys=" + end) << n;
  }
}

TEST(Classes, OfOptionsAreThoseTheLineSays) {
  const std::string line =
      "dtype=bf16 batch=2 heads=6/2 seq=33x65 dim=80/40 scale=-1 align=bottom-right window=15:0 prefix=3 lengths=0,65 "
      "mask=add:1H1K:neginf(0.3) mask.dtype=f32 softcap=20 sinks=1,2,3,4,5,6 out=o,lse q.strides=60000,7000,90,1 "
      "k.offset=6 fill=spread(88) poison=hidden:k seed=4294967296";
  const std::map<std::string, std::string> expected = {{"dtype", "dtype=bf16"},
                                                       {"group", "group=3"},
                                                       {"scale", "scale=below 0"},
                                                       {"align", "align=bottom-right"},
                                                       {"window left", "window left=8..31"},
                                                       {"window right", "window right=0"},
                                                       {"prefix", "prefix=2..15"},
                                                       {"shortest length", "shortest length=0"},
                                                       {"mask", "mask=add"},
                                                       {"mask axes", "mask axes=1H1K"},
                                                       {"additive mask", "additive mask=neginf"},
                                                       {"mask.dtype", "mask.dtype=f32"},
                                                       {"softcap", "softcap=10 to 100"},
                                                       {"sinks", "sinks=given"},
                                                       {"out=lse", "out=lse"},
                                                       {"q.strides", "q.strides=rows apart"},
                                                       {"k.offset", "k.offset=2n"},
                                                       {"fill", "fill=spread"},
                                                       {"poison", "poison=hidden:k"},
                                                       {"seed", "seed=63 bits"},
                                                       {"causal", ""},
                                                       {"blocks", ""}};
  for (const auto& [feature, name] : expected) EXPECT_EQ(class_of(line, feature), name) << feature;
}

/// Half of the draws lie near the beginning; the others reach every magnitude of the range, and of an open one far.
TEST(Classes, NumbersLieAnywhereInTheirRange) {
  std::set<std::int64_t> met;
  std::int64_t near = 0, farthest = 0;
  Random random(1);
  const auto draw = [&] { return random.below(std::size_t{1} << 40); };
  for (int n = 0; n < 4000; ++n) {
    const std::int64_t number = number_in({1025, 2047}, draw());
    ASSERT_TRUE(1025 <= number && number <= 2047);
    met.insert(number);
    near += number <= 1033;
  }
  EXPECT_GT(met.size(), 700u);
  EXPECT_NEAR(static_cast<double>(near), 2000, 200);
  for (int n = 0; n < 4000; ++n) farthest = std::max(farthest, number_in({128, Range::kOpen}, draw()));
  EXPECT_GT(farthest, 100'000);
  EXPECT_EQ(number_in({7, 7}, draw()), 7);
  for (int n = 0; n < 4000; ++n) {
    const double x = real_in(0x1p-6, 1, draw());
    ASSERT_TRUE(0x1p-6 <= x && x < 1) << x;
  }
}

/// Every class knows how to be met.
TEST(Classes, KnowHowToBeMet) {
  Random random(3);
  const CaseLimits limits = {2e8, 256.0 * (1 << 20)};
  for (std::size_t c = 0; c < classes_of_table().size(); ++c) {
    const TableClass& one = classes_of_table()[c];
    const std::optional<Problem> met = case_in(std::vector{c}, limits, random);
    ASSERT_TRUE(met.has_value()) << one.name();
    EXPECT_EQ(one.feature->class_of(*met), one.which) << print_case(*met);
    EXPECT_EQ(parse_case(print_case(*met)), *met) << print_case(*met);
  }
}

TEST(Coverage, OfNothingToComputeIsThatAlone) {
  Coverage coverage;
  coverage.meet(parse_case("seq=5x0 dim=4 causal align=top-left"));
  EXPECT_TRUE(coverage.met(class_named("keys=0")));
  EXPECT_TRUE(coverage.met(class_named("keys=0"), class_named("causal")));
  EXPECT_FALSE(coverage.met(class_named("causal")));
  EXPECT_FALSE(coverage.met(class_named("causal"), class_named("align=top-left")));
  coverage.meet(parse_case("seq=5x3 dim=4 causal align=top-left"));
  EXPECT_TRUE(coverage.met(class_named("causal"), class_named("align=top-left")));
  EXPECT_FALSE(coverage.met(class_named("causal"), class_named("mask=bool")));
}

/// What is said to be impossible is met by no suite: the reasons are right.
TEST(Coverage, WhatIsCalledImpossibleIsMetNowhere) {
  const Coverage met = coverage_of({"backward", "bugs", "large", "linear", "masks", "matrix", "smoke", "deep"});
  for (const auto& [a, b] : all_pairs()) {
    if (why_impossible(a, b) == nullptr || !met.met(a, b)) continue;
    const std::string reason = why_impossible(a, b);
    // What takes too much here stands somewhere as a case of its own.
    if (reason.starts_with("takes")) continue;
    ADD_FAILURE() << classes_of_table()[a].name() << " + " << classes_of_table()[b].name() << ": " << reason;
  }
  EXPECT_NE(why_impossible(class_named("op=linear"), class_named("causal")), nullptr);
  EXPECT_NE(why_impossible(class_named("keys=33..63"), class_named("end of keys=64n")), nullptr);
  EXPECT_NE(why_impossible(class_named("keys=1"), class_named("prefix=2..15")), nullptr);
  EXPECT_EQ(why_impossible(class_named("keys=33..63"), class_named("end of keys=64n-1")), nullptr);
}

TEST(Coverage, MatrixLargeAndBackwardMeetEveryClassAndEveryOptionBesideEveryLength) {
  const Coverage met = coverage_of({"matrix", "large", "backward"});
  for (std::size_t c = 0; c < classes_of_table().size(); ++c) {
    EXPECT_TRUE(met.met(c)) << classes_of_table()[c].name();
  }
  for (std::size_t o = 0; o < options().size(); ++o) {
    for (std::size_t c : length_classes()) {
      if (!options()[o].varies() || why_impossible_option(options()[o], c)) continue;
      EXPECT_TRUE(met.option_met(o, c)) << options()[o].key << " beside " << classes_of_table()[c].name();
    }
  }
}

TEST(Coverage, OfThreeAtATime) {
  Coverage met;
  met.meet(case_from_line("dtype=f16 seq=33x64 dim=8 causal align=top-left mask=bool:11QK:none").problem);
  std::vector<std::string> names;
  for (const Triple& t : all_triples()) {
    if (!met.met(t)) continue;
    names.push_back(classes_of_table()[t.type].name() + " " + visibilities()[t.visibility].name + " " +
                    classes_of_table()[t.length].name());
  }
  const std::vector<std::string> expected = {"dtype=f16 causal queries=33..63", "dtype=f16 causal keys=64",
                                             "dtype=f16 mask=bool queries=33..63", "dtype=f16 mask=bool keys=64"};
  EXPECT_EQ(names, expected);
}

TEST(Coverage, DeepMeetsEveryTypeBesideEveryVisibilityAndLength) {
  const Coverage met = coverage_of({"deep"});
  std::size_t possible = 0;
  for (const Triple& t : all_triples()) {
    if (why_impossible(t)) {
      EXPECT_FALSE(met.met(t)) << why_impossible(t);
      continue;
    }
    ++possible;
    EXPECT_TRUE(met.met(t)) << classes_of_table()[t.type].name() << " " << visibilities()[t.visibility].name << " "
                            << classes_of_table()[t.length].name();
  }
  EXPECT_GT(possible, 3000u);
}

TEST(Coverage, DeepAndBackwardMeetEveryPossiblePair) {
  const Coverage met = coverage_of({"deep", "backward"});
  std::size_t pairs = 0;
  for (std::size_t c = 0; c < classes_of_table().size(); ++c) EXPECT_TRUE(met.met(c)) << classes_of_table()[c].name();
  for (const auto& [a, b] : all_pairs()) {
    if (why_impossible(a, b)) continue;
    ++pairs;
    EXPECT_TRUE(met.met(a, b)) << classes_of_table()[a].name() << " + " << classes_of_table()[b].name();
  }
  EXPECT_GT(pairs, 50000u);
}

}  // namespace
}  // namespace attest
