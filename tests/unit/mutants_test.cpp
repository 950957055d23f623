// The judgement of tests/mutants: the tolerances of others, and the list of equivalent mutants.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "harness/base/user_error.h"
#include "tests/mutants/equivalent.h"
#include "tests/mutants/rules.h"

namespace attest::mutants {
namespace {

bool accepts(std::string_view name, const Tensor& tensor) {
  for (const Rule& rule : rules()) {
    if (rule.name == name) return rule.accepts(tensor);
  }
  throw std::logic_error("no rule " + std::string(name));
}

/// One element of the type.
Tensor one(double got, double expected, DType dtype = DType::f32, double baseline = 0) {
  return {dtype, {got}, {expected}, {baseline}};
}

TEST(Rules, JustInsideAndJustOutside) {
  EXPECT_TRUE(accepts("torch", one(1 + 1.12e-5, 1)));
  EXPECT_FALSE(accepts("torch", one(1 + 1.14e-5, 1)));
  EXPECT_TRUE(accepts("torch", one(1 + 1.60e-2, 1, DType::bf16)));
  EXPECT_FALSE(accepts("torch", one(1 + 1.61e-2, 1, DType::bf16)));
  EXPECT_TRUE(accepts("1e-4", one(1 + 1.99e-4, 1)));
  EXPECT_FALSE(accepts("1e-4", one(1 + 2.01e-4, 1)));
  EXPECT_TRUE(accepts("1e-2", one(1e-2, 0)));
  EXPECT_FALSE(accepts("1e-2", one(1.01e-2, 0)));
  EXPECT_TRUE(accepts("nmse", one(1 + 0.0223, 1)));
  EXPECT_FALSE(accepts("nmse", one(1 + 0.0225, 1)));
  EXPECT_TRUE(accepts("twice", one(1.2, 1, DType::f32, 1.1)));
  EXPECT_FALSE(accepts("twice", one(1.21, 1, DType::f32, 1.1)));
}

TEST(Rules, BenchdnnForgivesOneElementInAThousand) {
  EXPECT_TRUE(accepts("benchdnn", one(0.5 + 1.9e-5, 0.5)));
  EXPECT_FALSE(accepts("benchdnn", one(0.5 + 2.1e-5, 0.5)));
  EXPECT_TRUE(accepts("benchdnn", one(100 * (1 + 7.9e-6), 100)));
  EXPECT_FALSE(accepts("benchdnn", one(100 * (1 + 8.2e-6), 100)));
  Tensor many{DType::f32, std::vector<double>(2048, 1), std::vector<double>(2048, 1), std::vector<double>(2048, 1)};
  many.got[7] = many.got[9] = 1.05;  // two of 2,048 may be off, as long as the whole is near
  EXPECT_TRUE(accepts("benchdnn", many));
  many.got[11] = 1.05;
  EXPECT_FALSE(accepts("benchdnn", many));
  many.got[11] = 1;
  many.got[7] = 1.2;
  EXPECT_FALSE(accepts("benchdnn", many));
}

TEST(Rules, ClassesMustAgree) {
  for (const Rule& rule : rules()) {
    EXPECT_TRUE(rule.accepts(one(NAN, NAN, DType::f32, NAN))) << rule.name;
    EXPECT_TRUE(rule.accepts(one(-INFINITY, -INFINITY, DType::f32, -INFINITY))) << rule.name;
    EXPECT_FALSE(rule.accepts(one(NAN, 1, DType::f32, 1))) << rule.name;
    EXPECT_FALSE(rule.accepts(one(1, NAN, DType::f32, NAN))) << rule.name;
    EXPECT_FALSE(rule.accepts(one(INFINITY, 1, DType::f32, 1))) << rule.name;
    EXPECT_FALSE(rule.accepts(one(INFINITY, -INFINITY, DType::f32, -INFINITY))) << rule.name;
  }
}

TEST(Equivalents, EachHasAReasonAndStandsOnce) {
  const auto path = std::filesystem::temp_directory_path() / "attest_equivalent_test.txt";
  const auto read = [&](const std::string& text) {
    std::ofstream(path) << text;
    return read_equivalents(path);
  };
  const auto list = read("# a comment\n\na: x {< -> <=} y\n    the end is\n    not reached\nb: z\n  same\n");
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list.at("a: x {< -> <=} y"), "the end is not reached");
  EXPECT_EQ(list.at("b: z"), "same");
  EXPECT_THROW(read("a: x\nb: y\n  reason\n"), UserError);
  EXPECT_THROW(read("a: x\n"), UserError);
  EXPECT_THROW(read("  a reason first\n"), UserError);
  EXPECT_THROW(read("a: x\n  r\na: x\n  r\n"), UserError);
  std::filesystem::remove(path);
  EXPECT_THROW(read_equivalents(path), UserError);
}

}  // namespace
}  // namespace attest::mutants
