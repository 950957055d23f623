// Values as text: what can't be read is marked at its column.
#include "reference/options/option_text.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace attest {
namespace {

/// The column of a complaint; 0 when there is none.
std::size_t column_of(const std::function<void()>& read) {
  try {
    read();
  } catch (const CaseError& error) {
    EXPECT_NE(error.what()[0], '\0');
    return error.column();
  }
  return 0;
}

TEST(OptionText, WholeNumbers) {
  EXPECT_EQ(parse_integer({"42", 5}, 1, "a size"), 42);
  for (const char* wrong : {"", "0", "-3", "4x", "1e3", " 4", "9223372036854775808"}) {
    EXPECT_GE(column_of([&] { parse_integer({wrong, 5}, 1, "a size"); }), 5u) << wrong;
  }
}

TEST(OptionText, PairsOrOneForBoth) {
  EXPECT_EQ(parse_pair({"8/2", 1}, '/', 0, "heads"), (std::pair<std::int64_t, std::int64_t>{8, 2}));
  EXPECT_EQ(parse_pair({"8", 1}, '/', 0, "heads"), (std::pair<std::int64_t, std::int64_t>{8, 8}));
  EXPECT_EQ(column_of([] { parse_pair({"8/x", 7}, '/', 0, "heads"); }), 9u);
  EXPECT_NE(column_of([] { parse_pair({"8/", 7}, '/', 0, "heads"); }), 0u);
  EXPECT_EQ(pair_text(8, 2, '/'), "8/2");
  EXPECT_EQ(pair_text(8, 8, '/'), "8");
}

TEST(OptionText, NumbersAreFiniteAndComeBack) {
  for (const char* text : {"0.1", "-3", "1e-300", "88", "0.30000000000000004"}) {
    const double value = parse_number({text, 1}, "a number");
    EXPECT_EQ(parse_number({print_number(value), 1}, "a number"), value) << text;
  }
  for (const char* wrong : {"inf", "nan", "1e999", "", "0x10", "1,"}) {
    EXPECT_NE(column_of([&] { parse_number({wrong, 1}, "a number"); }), 0u) << wrong;
  }
  EXPECT_EQ(parse_numbers({"1,-2,0.5", 1}, "a number"), (std::vector<double>{1, -2, 0.5}));
  EXPECT_NE(column_of([] { parse_numbers({"1,,2", 1}, "a number"); }), 0u);
}

TEST(OptionText, LengthsOfKeysOrOfBoth) {
  const LengthSpec keys = parse_lengths({"3,5", 1}, "a length");
  EXPECT_TRUE(keys.query.empty());
  EXPECT_EQ(keys.key, (std::vector<std::int64_t>{3, 5}));
  EXPECT_EQ(lengths_text(keys), "3,5");
  const LengthSpec both = parse_lengths({"q:1,2/k:3,5", 1}, "a length");
  EXPECT_EQ(both.query, (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(lengths_text(both), "q:1,2/k:3,5");
  for (const char* wrong : {"q:1,2", "k:1/q:2", "3,-1", "q:1/k:"}) {
    EXPECT_NE(column_of([&] { parse_lengths({wrong, 1}, "a length"); }), 0u) << wrong;
  }
}

TEST(OptionText, SidesOfAWindow) {
  EXPECT_EQ(parse_window_side({"inf", 1}), Call::kUnbounded);
  EXPECT_EQ(window_side_text(Call::kUnbounded), "inf");
  EXPECT_EQ(window_side_text(parse_window_side({"7", 1})), "7");
  EXPECT_NE(column_of([] { parse_window_side({"-1", 1}); }), 0u);
}

TEST(OptionText, AxesOfAMask) {
  EXPECT_EQ(parse_mask_axes({"B1QK", 1}), (std::array<bool, 4>{true, false, true, true}));
  EXPECT_EQ(mask_axes_text({true, false, true, true}), "B1QK");
  for (const char* wrong : {"BHQ", "BHQKK", "HBQK", "bhqk"}) {
    EXPECT_NE(column_of([&] { parse_mask_axes({wrong, 1}); }), 0u) << wrong;
  }
}

TEST(OptionText, FillsWithTheNumbersThatTheyTake) {
  const Fill spread = parse_fill({"spread(88)", 1}, tensor_fills());
  EXPECT_EQ(spread.name, "spread");
  EXPECT_EQ(spread.args, (std::vector<double>{88}));
  EXPECT_EQ(fill_text(spread), "spread(88)");
  EXPECT_EQ(fill_text(parse_fill({"normal", 1}, tensor_fills())), "normal");
  for (const char* wrong : {"spread", "spread()", "spread(1,2)", "normal(1)", "spread(88", "nromal"}) {
    EXPECT_NE(column_of([&] { parse_fill({wrong, 1}, tensor_fills()); }), 0u) << wrong;
  }
}

TEST(OptionText, SeedsHaveSixtyFourBits) {
  EXPECT_EQ(parse_seed({"18446744073709551615", 1}), ~std::uint64_t{0});
  EXPECT_NE(column_of([] { parse_seed({"18446744073709551616", 1}); }), 0u);
  EXPECT_NE(column_of([] { parse_seed({"-1", 1}); }), 0u);
}

TEST(OptionText, StridesAreFourAndZeroWhereAllowed) {
  EXPECT_EQ(parse_strides({"12,0,4,1", 1}, true), (Index4{12, 0, 4, 1}));
  EXPECT_NE(column_of([] { parse_strides({"12,0,4,1", 1}, false); }), 0u);
  EXPECT_NE(column_of([] { parse_strides({"12,4,1", 1}, true); }), 0u);
}

}  // namespace
}  // namespace attest
