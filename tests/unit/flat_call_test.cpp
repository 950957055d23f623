#include "harness/backends/plugin/flat_call.h"

#include <gtest/gtest.h>

#include <cstring>

#include "backends/plugin/attest_plugin.hpp"
#include "harness/cases/suites.h"
#include "reference/options/case_line.h"
#include "reference/options/options.h"

namespace attest {
namespace {

Call call_of(const std::string& line) { return parse_case(line); }

TEST(FlatCall, CarriesEveryCallOfEverySuite) {
  std::size_t calls = 0;
  std::uint64_t met = 0;
  for (const Suite& suite : find_suites()) {
    for (const Case& one : load_suite(suite)) {
      const Call& call = one.problem;
      const FlatCall flat(call, sizeof(attest_call));
      ASSERT_EQ(plugin::call_from(*flat.get()), call) << one.label;
      met |= flat.get()->features;
      ++calls;
    }
  }
  EXPECT_GT(calls, 3000u);
  EXPECT_EQ(met, ATTEST_FEATURES_KNOWN) << "a bit that no suite meets, or one that the header doesn't know";
}

TEST(FlatCall, FeaturesSayWhatACallUses) {
  const std::uint64_t plain = ATTEST_HAS_F32 | ATTEST_HAS_ATTENTION;
  EXPECT_EQ(features_of(call_of("seq=4 dim=4")), plain);
  EXPECT_EQ(features_of(call_of("seq=4 dim=4 causal")), plain | ATTEST_HAS_CAUSAL);
  EXPECT_EQ(features_of(call_of("dtype=bf16 seq=4 dim=4")), ATTEST_HAS_BF16 | ATTEST_HAS_ATTENTION);
  EXPECT_EQ(features_of(call_of("op=gated_delta seq=4 dim=4")), ATTEST_HAS_F32 | ATTEST_HAS_GATED_DELTA);
  EXPECT_EQ(features_of(call_of("heads=8/2 seq=4x5 dim=4/6")), plain | ATTEST_HAS_HEADS | ATTEST_HAS_GROUPED_HEADS |
                                                                   ATTEST_HAS_OTHER_KEY_LENGTH |
                                                                   ATTEST_HAS_OTHER_VALUE_DIM);
  EXPECT_EQ(features_of(call_of("seq=4 dim=4 dropout=0.5 seed=3 out=o,lse,present past=1")),
            plain | ATTEST_HAS_DROPOUT | ATTEST_HAS_LSE | ATTEST_HAS_PRESENT | ATTEST_HAS_PAST);
  EXPECT_EQ(features_of(call_of("seq=4 dim=4 k.offset=1")), plain | ATTEST_HAS_STRIDES);
}

/// No row of the table of options is forgotten: each is a member of the interface, or a call that has it is refused.
TEST(FlatCall, KnowsEveryOptionOfTheTable) {
  for (const Option& option : options()) {
    if (option.key == "fill" || option.key == "poison" || option.key.ends_with(".fill")) continue;  // no part of a call
    Problem problem;
    problem.query_length = problem.key_length = 4;
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

TEST(FlatCall, FeatureNamesStandAtTheirBits) {
  EXPECT_STREQ(attest_feature_name(ATTEST_HAS_F64), "dtype=f64");
  EXPECT_STREQ(attest_feature_name(ATTEST_HAS_SOFTCAP), "softcap");
  EXPECT_STREQ(attest_feature_name(ATTEST_HAS_PACKED), "layout=thd");
  EXPECT_STREQ(attest_feature_name(ATTEST_HAS_CAUSAL_PREFIX), "prefix=causal");
  EXPECT_STREQ(attest_feature_name(ATTEST_HAS_GAP), "gap");
  EXPECT_STREQ(attest_feature_name(ATTEST_HAS_SLOPES_PER_BATCH), "alibi per batch");
  EXPECT_STREQ(attest_feature_name(ATTEST_HAS_OTHER), "an option that is younger than this plug-in");
  EXPECT_STREQ(attest_feature_name(ATTEST_HAS_PLACED_OTHERS), "strides of other tensors");
  EXPECT_STREQ(attest_feature_name(ATTEST_HAS(48)), "an option that is younger than this plug-in");
}

}  // namespace
}  // namespace attest
