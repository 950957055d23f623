// Probes of statements about products: emulated kernels that tell the truth, and others that don't.
#include <gtest/gtest.h>

#include <string>

#include "harness/backends/isolation/arithmetic_json.h"
#include "harness/probe/probe.h"
#include "reference/arithmetic/rounding.h"
#include "tests/emulator/accusations.h"
#include "tests/emulator/declarations.h"
#include "tests/unit/helpers.h"

namespace attest::emulator {
namespace {

Arithmetic with(const Arithmetic& arithmetic, const std::string& fields) {
  Json json = arithmetic;
  json.merge_patch(Json::parse(fields));
  return json.get<Arithmetic>();
}

/// What probing says of one member of a kernel in f32 that does one thing and declares another.
std::string verdict_of(const std::string& member, const std::string& does, const std::string& says) {
  Emulated e;
  e.does = with(plain_arithmetic(DType::f32), does);
  e.says = with(plain_arithmetic(DType::f32), says);
  e.seed = 4;
  EmulatorBackend backend(e);
  for (const ProbedStatement& s : probe_arithmetic_in(backend, DType::f32)) {
    if (s.name == member + ", f32") return s.verdict().substr(0, s.verdict().find(';'));
  }
  return "not said";
}

struct Truth {
  const char* member;
  const char* fields;
};

constexpr Truth kSeen[] = {
    {"query_operand", R"({"query_operand":"tf32"})"},
    {"query_operand", R"({"query_operand":"e5m2"})"},
    {"key_operand", R"({"key_operand":"bf16"})"},
    {"value_operand", R"({"value_operand":"f16"})"},
    {"value_operand", R"({"value_operand":"e4m3","query_operand":"bf16"})"},
    {"weight_operand", R"({"weight_operand":"bf16"})"},
    {"weight_operand", R"({"weight_operand":"e4m3","weight_factor":256})"},
    {"weight_operand", R"({"weight_operand":"e4m3","weight_factor":448,"sum_of_stored":true})"},
    {"weight_operand", R"({"weight_operand":"u8","weight_factor":255})"},
    {"score_sum", R"({"score_sum":{"format":"f16"}})"},
    {"score_sum", R"({"score_sum":{"bits":13,"width":32,"directed":true},"query_operand":"e4m3"})"},
    {"value_sum", R"({"value_sum":{"format":"f16","promote":4}})"},
    {"value_sum", R"({"value_sum":{"format":"bf16"}})"},
    {"weight_sum", R"({"weight_sum":{"format":"f16"}})"},
    {"exp_absolute", R"({"exp_absolute":0.001})"},
    {"exp_argument", R"({"exp_argument":"bf16"})"},
    {"query_operand", R"({"query_operand":"int4","query_rounding":{"step":0}})"},
    {"key_operand", R"({"key_operand":"int8","key_rounding":{"step":0}})"},
    {"value_operand", R"({"value_operand":"bf16x3"})"},
    {"value_operand", R"({"value_operand":"tf32","value_rounding":{"directed":true}})"},
    {"weight_operand", R"({"weight_operand":"int8","weight_rounding":{"step":0}})"},
    {"query_rounding", R"({"query_operand":"int8","query_rounding":{"step":0}})"},
    {"key_rounding", R"({"key_operand":"int8","key_rounding":{"step":0}})"},
    {"value_rounding", R"({"value_operand":"int8","value_rounding":{"step":0}})"},
    {"weight_rounding", R"({"weight_operand":"int8","weight_rounding":{"step":0}})"},
};

TEST(ProductProbes, ConfirmWhatIsTrue) {
  for (const Truth& truth : kSeen) {
    EXPECT_EQ(verdict_of(truth.member, truth.fields, truth.fields), "holds") << truth.fields;
  }
}

TEST(ProductProbes, SayWhatComparingOutputsCannotShow) {
  for (const Truth& truth : {Truth{"score_sum", R"({"score_sum":{"bits":25,"width":16}})"},
                             Truth{"score_roundings", R"({"score_roundings":3,"query_operand":"bf16"})"},
                             Truth{"rescale_ulps", R"({"rescale_ulps":2})"},
                             Truth{"key_operand", R"({"key_rounding":{"mean_removed":true,"mean_format":"bf16"}})"},
                             Truth{"value_rounding", R"({"value_operand":"e4m3","value_rounding":{"step":0}})"}}) {
    EXPECT_EQ(verdict_of(truth.member, truth.fields, truth.fields), "cannot be seen by comparing outputs")
        << truth.fields;
  }
}

struct Lie {
  const char* member;
  const char* does;
  const char* says;
  const char* verdict;
};

constexpr Lie kLies[] = {
    {"query_operand", R"({"query_operand":"bf16"})", R"({"query_operand":"tf32"})", "FALSE: observed bf16"},
    {"query_operand", R"({"query_operand":"bf16","key_operand":"bf16"})", R"({"key_operand":"bf16"})",
     "FALSE: observed bf16"},
    {"key_operand", R"({"key_operand":"e5m2"})", R"({"key_operand":"e4m3"})", "FALSE: observed e5m2"},
    {"value_operand", R"({"value_operand":"e4m3"})", R"({"value_operand":"f16"})", "FALSE: observed e4m3"},
    {"weight_operand", R"({"weight_operand":"e4m3","weight_factor":256})", R"({"weight_operand":"bf16"})",
     "FALSE: observed e4m3"},
    {"score_sum", R"({"score_sum":{"format":"bf16"}})", R"({"score_sum":{"format":"f16"}})", "FALSE: observed bf16"},
    {"value_sum", R"({"value_sum":{"format":"f16"},"query_operand":"bf16"})", R"({"query_operand":"bf16"})",
     "FALSE: observed f16"},
    {"query_operand", R"({"query_operand":"tf32"})", R"({"query_operand":"bf16"})",
     "TOO WIDE: declares bf16, shows tf32"},
    {"key_operand", "{}", R"({"key_operand":"e4m3"})", "TOO WIDE: declares e4m3, shows exact"},
    {"value_operand", "{}", R"({"value_operand":"tf32"})", "TOO WIDE: declares tf32, shows exact"},
    {"query_operand", R"({"query_operand":"int4","query_rounding":{"step":0}})",
     R"({"query_operand":"int8","query_rounding":{"step":0}})", "FALSE"},
    {"key_rounding", R"({"key_operand":"int8","key_rounding":{"step":0}})",
     R"({"key_operand":"int8","key_rounding":{"step":0,"rows":1}})", "FALSE"},
    {"value_rounding", R"({"value_operand":"int8","value_rounding":{"step":0}})",
     R"({"value_operand":"int8","value_rounding":{"step":0,"rows":1}})", "FALSE"},
    {"score_sum", "{}", R"({"score_sum":{"format":"f16"}})", "TOO WIDE: declares f16, shows default"},
};

TEST(ProductProbes, ContradictWhatIsFalse) {
  for (const Lie& lie : kLies) {
    const std::string wanted = lie.verdict, verdict = verdict_of(lie.member, lie.does, lie.says);
    EXPECT_EQ(wanted == "FALSE" ? verdict.substr(0, 5) : verdict, wanted) << lie.does << " declared as " << lie.says;
  }
}

TEST(ProductProbes, DoNotAskForBitsThatTheDataHaveNot) {
  Emulated e;
  e.does = e.says = with(plain_arithmetic(DType::bf16), R"({"query_operand":"bf16"})");
  EmulatorBackend backend(e);
  bool found = false;
  for (const ProbedStatement& s : probe_arithmetic_in(backend, DType::bf16)) {
    found = found || s.name == "query_operand, bf16";
    EXPECT_TRUE(s.holds) << s.name << ": " << s.verdict();
    EXPECT_TRUE(s.unseen || s.name != "query_operand, bf16");
  }
  EXPECT_TRUE(found);
}

TEST(ProductProbes, NeverAccuseAKernelThatTellsTheTruth) {
  Random random(16);
  for (int n = 0; n < 40; ++n) {
    Emulated e = random_declaration(random, DType::f32);
    if (e.behaviour == Behaviour::limit || !states_products(e.does)) continue;
    const auto accusations = accused_by_probes(e);
    EXPECT_TRUE(accusations.empty()) << (accusations.empty() ? "" : accusations.front());
  }
}

}  // namespace
}  // namespace attest::emulator
