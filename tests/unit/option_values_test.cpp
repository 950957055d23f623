// Values of options, walked over by the shrinker and by random cases.
#include "harness/cases/option_values.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "reference/options/case_line.h"
#include "reference/options/find_fault.h"

namespace attest {
namespace {

using Steps = std::vector<std::int64_t>;
using Texts = std::vector<std::string>;

const Option& option(const std::string& key) {
  const Option* found = find_option(key);
  EXPECT_NE(found, nullptr) << key;
  return *found;
}

TEST(OptionValues, StepsGoThereAtOnceThenByHalves) {
  EXPECT_EQ(steps_towards(1, 100), (Steps{1, 2, 50, 64, 99}));
  EXPECT_EQ(steps_towards(0, 2), (Steps{0, 1}));
  EXPECT_EQ(steps_towards(1, 1), Steps{});
  EXPECT_EQ(steps_towards(5, 3), Steps{});
}

TEST(OptionValues, SimplerOnesAreNeverThePresentOne) {
  const Problem p = parse_case("heads=2 seq=64 dim=4 prefix=9 alibi=0.5,3 softcap=30 causal");
  EXPECT_EQ(simpler_values(option("prefix"), p), (Texts{"1", "2", "5", "8"}));
  EXPECT_EQ(simpler_values(option("alibi"), p), (Texts{"0,3", "0,3", "0.5,0", "0.5,1"}));
  EXPECT_TRUE(simpler_values(option("causal"), p).empty());   // a flag
  EXPECT_TRUE(simpler_values(option("lengths"), p).empty());  // not set
  for (const Option& one : options()) {
    for (const std::string& text : simpler_values(one, p)) EXPECT_NE(text, one.print(p)) << one.key;
  }
}

TEST(OptionValues, ThoseThatDependOnSizesFollowThem) {
  Problem p =
      parse_case("batch=3 heads=4/2 seq=9 dim=4 lengths=9,5,1 alibi=1,2,3,4 prefix=9 mask=bool:BHQK:random(0.5)");
  p.call.batch = 2;
  p.call.query_heads = 3;
  p.call.key_length = p.call.query_length = 4;
  fit_to_sizes(p);
  EXPECT_EQ(p.call.query_heads, 2);  // whole groups
  EXPECT_EQ(p.call.lengths->key, (Steps{4, 4}));
  EXPECT_EQ(p.call.alibi_slopes.size(), 4u);  // now one for each batch and head, which is a case, too
  EXPECT_EQ(p.call.prefix, 4);
  EXPECT_FALSE(find_fault(p));
  p.call.mask.reset();
  fit_to_sizes(p);
  EXPECT_EQ(p.data.mask_fill, Fill{});  // nothing is left of a mask that is gone
}

TEST(OptionValues, AValueThatCanNotBeIsNoCase) {
  const Problem p = parse_case("seq=4 dim=4");
  EXPECT_FALSE(with_option(p, option("softcap"), "-1"));
  EXPECT_FALSE(with_option(p, option("lengths"), "1,2"));
  const auto capped = with_option(p, option("softcap"), "2");
  ASSERT_TRUE(capped);
  EXPECT_EQ(print_case(*capped), "seq=4 dim=4 softcap=2");
}

TEST(OptionValues, SamplesFitTheSizes) {
  const Problem p = parse_case("heads=3 seq=2x4 dim=4");
  Random random(1);
  for (int n = 0; n < 50; ++n) {
    for (const Option& one : options()) {
      const auto sample = random_sample(one, p, random);
      if (!sample || one.kind != OptionKind::integer || !one.at_most) continue;
      EXPECT_LE(std::stoll(*sample), extent_of(p, *one.at_most)) << one.key;
    }
  }
}

}  // namespace
}  // namespace attest
