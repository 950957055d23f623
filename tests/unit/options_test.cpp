// The table of options holds together, whatever rows it has.
#include "reference/options/options.h"

#include <gtest/gtest.h>

#include <set>

#include "harness/cases/random_case.h"
#include "reference/options/case_line.h"

namespace attest {
namespace {

/// A case with the option set, drawn until one is found; nullopt when none is.
std::optional<Problem> some_case_with(const Option& option) {
  Random random(11);
  for (int tries = 0; tries < 4000; ++tries) {
    const Problem p = tries % 2 == 0 ? random_softmax_case(random) : random_other_case(random);
    if (option.is_set(p)) return p;
  }
  return std::nullopt;
}

TEST(Options, HaveKeysOfTheirOwnAndSayWhatTheyAre) {
  std::set<std::string> keys;
  for (const Option& option : options()) {
    EXPECT_TRUE(keys.insert(option.key).second) << option.key;
    EXPECT_EQ(find_option(option.key), &option);
    EXPECT_FALSE(option.about.empty()) << option.key;
    EXPECT_TRUE(option.takes_value() || option.stands_alone) << option.key;
  }
}

/// Own fills of a tensor are set by hand alone: they would drown `fill` in random cases.
bool is_drawn(const Option& option) { return option.varies() && !option.key.ends_with(".fill"); }

TEST(Options, AreDrawnPrintedReadDroppedAndCovered) {
  for (const Option& option : options()) {
    if (!is_drawn(option)) continue;
    const std::optional<Problem> drawn = some_case_with(option);
    ASSERT_TRUE(drawn.has_value()) << option.key;
    EXPECT_EQ(parse_case(print_case(*drawn)), *drawn) << print_case(*drawn);
    EXPECT_TRUE(option.has(drawn->call.op)) << print_case(*drawn);
    Problem without = *drawn;
    option.drop(without);
    // An alignment is printed wherever the diagonal matters.
    const bool needed = option.key == "align" && without.call.uses_diagonal();
    EXPECT_EQ(option.print(without).value_or("gone"), needed ? "top-left" : option.print(Problem{}).value_or("gone"))
        << option.key;
  }
}

TEST(Options, OfOtherOperatorsAreFaults) {
  EXPECT_THROW(parse_case("op=linear seq=4 dim=4 softcap=1"), CaseError);
  EXPECT_THROW(parse_case("seq=4 dim=4 decay=head"), CaseError);
  EXPECT_NO_THROW(parse_case("op=gated seq=4 dim=4 decay=head"));
}

}  // namespace
}  // namespace attest
