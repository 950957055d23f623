#include "harness/backends/plugin/flat_call.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "backends/plugin/attest/attest_plugin.hpp"
#include "harness/cases/suites.h"
#include "reference/options/case_line.h"
#include "reference/options/options.h"

namespace attest {
namespace {

Call call_of(const std::string& line) { return parse_case(line); }

TEST(FlatCall, CarriesEveryCallOfEverySuite) {
  std::size_t calls = 0;
  std::set<std::string> met;
  for (const Suite& suite : find_suites()) {
    for (const Case& one : load_suite(suite)) {
      const Call& call = one.problem;
      const FlatCall flat(call, sizeof(attest_call));
      ASSERT_EQ(plugin::call_from(*flat.get()), call) << one.label;
      met.insert(flat.get()->features, flat.get()->features + flat.get()->feature_count);
      ++calls;
    }
  }
  EXPECT_GT(calls, 3000u);
  EXPECT_EQ(met, std::set<std::string>(std::begin(attest_known_features), std::end(attest_known_features)))
      << "a word that no suite meets, or one that the header doesn't know";
}

TEST(FlatCall, FeaturesSayWhatACallUses) {
  const auto expect = [](const std::string& line, std::vector<std::string> words) {
    const FlatCall flat(call_of(line), sizeof(attest_call));
    const attest_call& f = *flat.get();
    EXPECT_EQ(std::vector<std::string>(f.features, f.features + f.feature_count), words) << line;
  };
  expect("seq=4 dim=4", {"dtype=f32", "op=attention"});
  expect("seq=4 dim=4 causal", {"dtype=f32", "op=attention", "causal"});
  expect("dtype=bf16 seq=4 dim=4", {"dtype=bf16", "op=attention"});
  expect("op=gated_delta seq=4 dim=4 state", {"dtype=f32", "op=gated_delta", "state"});
  expect("op=linear seq=4 dim=4 l2norm", {"dtype=f32", "op=linear", "l2norm"});
  expect("heads=8/2 seq=4x5 dim=4/6",
         {"dtype=f32", "op=attention", "heads", "grouped heads", "seq=LqxLk", "dim=Dqk/Dv"});
  expect("seq=4 dim=4 dropout=0.5 seed=3 out=o,lse,present past=1",
         {"dtype=f32", "op=attention", "dropout", "past", "out=lse", "out=present"});
  expect("seq=4 dim=4 k.offset=1 lse.offset=1 out=o,lse",
         {"dtype=f32", "op=attention", "out=lse", "strides", "strides of other tensors"});
}

/// Tensors that lie as the layout says are left out.
TEST(FlatCall, PlacesWhatIsPlacedOtherwise) {
  const FlatCall flat(call_of("seq=4 dim=4 past=2 past_k.strides=12,12,6,1 v.offset=3"), sizeof(attest_call));
  ASSERT_EQ(flat.get()->placement_count, 2u);
  const attest_placement &v = flat.get()->placements[0], &past_k = flat.get()->placements[1];
  EXPECT_STREQ(v.role, "v");
  EXPECT_EQ(v.offset, 3);
  EXPECT_EQ(v.has_strides, 0);
  EXPECT_STREQ(past_k.role, "past_k");
  EXPECT_EQ(past_k.strides[2], 6);
}

/// No row of the table of options is forgotten: each is a member of the interface, or a call that has it is refused.
TEST(FlatCall, KnowsEveryOptionOfTheTable) {
  for (const Option& option : options()) {
    if (option.key == "fill" || option.key == "poison" || option.key.ends_with(".fill")) continue;  // no part of a call
    Problem problem;
    problem.call.query_length = problem.call.key_length = 4;
    if (option.kind == OptionKind::flag) option.parse(problem, {"", 1});
    EXPECT_EQ(unsupported_option(problem), std::nullopt) << option.key;
  }
}

TEST(FlatCall, HasRoomForWhatAYoungerPluginReads) {
  const FlatCall flat(call_of("seq=4 dim=4"), sizeof(attest_call) + 64);
  const char* behind = reinterpret_cast<const char*>(flat.get()) + sizeof(attest_call);
  EXPECT_EQ(std::string(behind, 64), std::string(64, '\0'));
  EXPECT_EQ(flat.get()->size, sizeof(attest_call));
}

}  // namespace
}  // namespace attest
