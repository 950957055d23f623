// What is no call: each fault names its key.
#include "reference/options/find_fault.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "reference/options/case_line.h"
#include "reference/options/options.h"
#include "tests/unit/complaint.h"

namespace attest {
namespace {

const char* const kSound = "batch=2 heads=4/2 seq=6x8 dim=4 causal align=bottom-right";

struct Break {
  const char *line, *key;
  std::function<void(Problem&)> change;
};

TEST(FindFault, NamesTheKeyOfWhatIsWrong) {
  const Break breaks[] = {
      {"pass=backward seq=2 dim=2", "dynamic", [](Call& p) { p.dynamic = true; }},
      {"seq=2x4 dim=2 past=2", "past", [](Call& p) { p.dynamic = true; }},
      {"pass=backward seq=2 dim=2", "append", [](Call& p) { p.append = true; }},
      {"seq=2x4 dim=2 past=2", "past", [](Call& p) { p.append = true; }},
      {"seq=2 dim=2 layout=qkv", "layout", [](Call& p) { p.append = true; }},
      {"seq=2 dim=2 layout=thd lengths=2", "append", [](Call& p) { p.append = true; }},
      {"seq=2 dim=2 out=o,present", "out", [](Call& p) { p.append = true; }},
      {"seq=3x2 dim=2", "append", [](Call& p) { p.append = true; }},
      {"heads=2 seq=2 dim=2 k.strides=0,0,2,1", "k.strides", [](Call& p) { p.append = true; }},
      {"op=delta seq=2 dim=2", "dynamic", [](Call& p) { p.dynamic = true; }},
      {"op=delta heads=4 seq=2 dim=2", "qk_heads", [](Call& p) { p.qk_heads = 3; }},
      {"op=delta heads=4/2 seq=2 dim=2", "qk_heads", [](Call& p) { p.qk_heads = 2; }},
      {"op=delta heads=4 seq=2 dim=2 layout=kv", "qk_heads", [](Call& p) { p.qk_heads = 2; }},
      {"op=delta heads=4 seq=2 dim=2 layout=qkv", "qk_heads", [](Call& p) { p.qk_heads = 2; }},
      {"op=delta pass=backward heads=4 seq=2 dim=2", "qk_heads", [](Call& p) { p.qk_heads = 2; }},
      {"op=delta pass=backward seq=2 dim=2", "l2norm", [](Call& p) { p.l2norm = 1e-6; }},
      {"seq=2 dim=2", "l2norm", [](Call& p) { p.l2norm = 1e-6; }},
      {"seq=2 dim=2 heads=4", "qk_heads", [](Call& p) { p.qk_heads = 2; }},
      {"op=delta pass=both seq=2 dim=2", "lengths",
       [](Call& p) {
         p.lengths = LengthSpec{{}, {2}};
       }},
      {"op=delta seq=2 dim=2", "lengths",
       [](Call& p) {
         p.lengths = LengthSpec{{1}, {2}};
       }},
      {kSound, "heads", [](Call& p) { p.key_heads = 3; }},
      {kSound, "lengths",
       [](Call& p) {
         p.lengths = LengthSpec{{}, {8}};
       }},
      {kSound, "lengths",
       [](Call& p) {
         p.lengths = LengthSpec{{}, {8, 9}};
       }},
      {kSound, "lengths",
       [](Call& p) {
         p.lengths = LengthSpec{{7, 1}, {8, 8}};
       }},
      {kSound, "segments",
       [](Call& p) {
         p.segments = LengthSpec{{6}, {4, 4}};
       }},
      {kSound, "segments",
       [](Call& p) {
         p.segments = LengthSpec{{3, 3}, {4, 5}};
       }},
      {kSound, "past", [](Call& p) { p.past = 9; }},
      {"heads=4 seq=6 dim=4 alibi", "alibi",
       [](Call& p) {
         p.alibi_slopes = {1, 2};
       }},
      {"heads=4 seq=6 dim=4 sinks", "sinks", [](Call& p) { p.sink_values = {1}; }},
  };
  for (const auto& [line, key, change] : breaks) {
    Problem p = parse_case(line);
    EXPECT_FALSE(find_fault(p)) << line;
    change(p);
    const auto fault = find_fault(p);
    ASSERT_TRUE(fault) << key;
    EXPECT_EQ(fault->key, key) << fault->message;
    EXPECT_FALSE(fault->message.empty());
    EXPECT_EQ(fault->message.find('\n'), std::string::npos);
  }
}

/// The error for an invalid line names the key that makes it invalid.
TEST(FindFault, OfLines) {
  for (const auto& [line, key] :
       {std::pair{"seq=4x8 dim=4 causal", "align"}, std::pair{"seq=4 dim=4 out.strides=16,16,1,1", "out.strides"},
        std::pair{"seq=4 dim=4 mask.dtype=f32", "mask.dtype"}, std::pair{"seq=4x5 dim=4 layout=qkv", "layout"},
        std::pair{"op=linear seq=4 dim=4 softcap=1", "softcap"}, std::pair{"op=linear seq=4 dim=4 out=o,lse", "out"},
        std::pair{"op=delta seq=8x9 dim=4", "keys"}, std::pair{"seq=4 dim=4 state", "state"}}) {
    const std::string told = complaint<CaseError>([&line = line] { parse_case(line); });
    EXPECT_NE(told.find(std::string(key).substr(0, 3)), std::string::npos) << line << ": " << told;
  }
}

TEST(FindFault, SizesBeyondAllStorageAreFaultsAndNoOverflow) {
  const std::int64_t huge = std::int64_t{1} << 62;
  Problem p = parse_case("seq=4 dim=4");
  p.call.query_length = p.call.key_length = huge;
  EXPECT_TRUE(find_fault(p));
  p = parse_case("seq=4 dim=4");
  p.call.batch = p.call.query_heads = p.call.key_heads = huge;
  EXPECT_TRUE(find_fault(p));
}

}  // namespace
}  // namespace attest
