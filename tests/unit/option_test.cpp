// Rows of the table of options by kind: each reads what it prints, and goes back to what a call begins with.
#include "reference/options/option.h"

#include <gtest/gtest.h>

#include <string>

#include "reference/options/case_line.h"
#include "tests/unit/complaint.h"

namespace attest {
namespace {

std::string read_and_print(const Option& option, const std::string& text) {
  Problem p;
  option.parse(p, {text, 1});
  return option.print(p).value_or("(not set)");
}

TEST(Option, AFlagIsThereOrNot) {
  const Option flag = flag_option("causal", &Call::causal);
  Problem p;
  EXPECT_FALSE(flag.is_set(p));
  EXPECT_FALSE(flag.takes_value());
  flag.parse(p, {"", 1});
  EXPECT_TRUE(p.call.causal);
  EXPECT_EQ(flag.print(p), "");
  flag.drop(p);
  EXPECT_FALSE(p.call.causal);
}

TEST(Option, AnIntegerBeginsAtItsLeast) {
  const Option prefix = integer_option("prefix", &Call::prefix, 0, "a count of keys");
  EXPECT_EQ(read_and_print(prefix, "12"), "12");
  EXPECT_EQ(read_and_print(prefix, "0"), "(not set)");
  for (const char* wrong : {"-1", "1.5", "", "x", "99999999999999999999"}) {
    EXPECT_THROW(read_and_print(prefix, wrong), CaseError) << wrong;
  }
  EXPECT_EQ(prefix.min, 0);
}

TEST(Option, ANumberIsInItsRange) {
  const Option softcap = number_option(
      "softcap", &Call::softcap, [](double x) { return x > 0; }, "softcap must be above 0");
  EXPECT_EQ(read_and_print(softcap, "2.50"), "2.5");
  for (const char* wrong : {"0", "-1", "inf", "nan", "2x"}) {
    EXPECT_THROW(read_and_print(softcap, wrong), CaseError) << wrong;
  }
}

TEST(Option, NumbersForHeadsMayStandAlone) {
  const Option alibi = numbers_option("alibi", &Call::alibi_slopes, &Call::alibi, "a slope");
  Problem p;
  alibi.parse(p, {"", 1});
  EXPECT_TRUE(p.call.alibi);
  EXPECT_TRUE(p.call.alibi_slopes.empty());
  EXPECT_EQ(alibi.print(p), "");
  alibi.parse(p, {"0.5,2", 1});
  EXPECT_EQ(p.call.alibi_slopes, (std::vector<double>{0.5, 2}));
  EXPECT_EQ(alibi.print(p), "0.5,2");
  alibi.drop(p);
  EXPECT_EQ(p, Problem{});
  EXPECT_THROW(read_and_print(alibi, "1,,2"), CaseError);
}

TEST(Option, ANameIsOneOfAFew) {
  const Option dtype = name_option("dtype", &Call::dtype, kNames<DType>, "a type");
  EXPECT_EQ(read_and_print(dtype, "bf16"), "bf16");
  EXPECT_EQ(read_and_print(dtype, "f32"), "(not set)");  // the default
  const std::string told = complaint<CaseError>([&] { read_and_print(dtype, "f31"); });
  EXPECT_NE(told.find("f32"), std::string::npos) << told;  // the nearest
}

TEST(Option, ExtentsAreThoseOfTheCall) {
  const Problem p = parse_case("batch=2 heads=6/3 seq=4x5 dim=7/8");
  const std::pair<Axis, std::int64_t> extents[] = {{Axis::one, 1},       {Axis::batch, 2},    {Axis::query_heads, 6},
                                                   {Axis::key_heads, 3}, {Axis::queries, 4},  {Axis::keys, 5},
                                                   {Axis::key_dim, 7},   {Axis::value_dim, 8}};
  for (const auto& [axis, extent] : extents) EXPECT_EQ(extent_of(p, axis), extent);
}

}  // namespace
}  // namespace attest
