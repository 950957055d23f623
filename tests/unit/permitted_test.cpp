#include "harness/judge/permitted.h"

#include <gtest/gtest.h>

#include <functional>

#include "harness/base/user_error.h"
#include "harness/verdict/restatement.h"

namespace attest {
namespace {

using Change = std::function<void(Arithmetic&)>;

Call call_of(DType dtype, std::int64_t keys = 16) {
  Call call;
  call.dtype = dtype;
  call.key_length = keys;
  return call;
}

std::string excess(const Change& change, const std::vector<std::string>& words = {}, DType of_call = DType::f32) {
  PermittedStatements permitted;
  for (const std::string& word : words) permitted.permit(word);
  Arithmetic stated;
  change(stated);
  return permitted.excess(stated, call_of(of_call));
}

TEST(PermittedStatements, WhatIsNoLooserThanFloatIsFree) {
  const Change free[] = {[](Arithmetic&) {},
                         [](Arithmetic& a) { a.accumulator = a.stored_weights = a.stored_scores = DType::f64; },
                         [](Arithmetic& a) { a.exp_ulps = a.log_ulps = 0.5; },
                         [](Arithmetic& a) { a.base2 = true, a.scale = ScalePlacement::folded_log2e; },
                         [](Arithmetic& a) { a.key_block = 64, a.lazy_threshold = 5; },
                         [](Arithmetic& a) { a.parts = 8, a.normalised_before_storage = true; },
                         [](Arithmetic& a) { a.division = Division::reciprocal; },
                         [](Arithmetic& a) { a.score_sum.format = SumFormat::exact; }};
  for (const Change& change : free) EXPECT_EQ(excess(change), "");
}

TEST(PermittedStatements, WhatIsLooserIsNamed) {
  const std::pair<Change, const char*> looser[] = {
      {[](Arithmetic& a) { a.stored_weights = DType::bf16; }, "stored_weights is bf16, the task permits f32"},
      {[](Arithmetic& a) { a.stored_parts = DType::f16; }, "stored_parts is f16, the task permits f32"},
      {[](Arithmetic& a) { a.exp_ulps = 300; }, "exp_ulps is 300, the task permits up to 2"},
      {[](Arithmetic& a) { a.exp_absolute = 0.1; }, "exp_absolute is 0.1, the task permits up to 0"},
      {[](Arithmetic& a) { a.lazy_threshold = 80; }, "lazy_threshold is 80, the task permits up to 8"},
      {[](Arithmetic& a) { a.flush_to_zero = true; }, "flush_to_zero is true, the task permits false"},
      {[](Arithmetic& a) { a.no_maximum = true; }, "no_maximum is true, the task permits false"},
      {[](Arithmetic& a) { a.division = Division::opencl_division; },
       "division is opencl_division, the task permits ieee, reciprocal"},
      {[](Arithmetic& a) { a.key_operand = OperandFormat::tf32; }, "key_operand is tf32, the task permits exact"},
      {[](Arithmetic& a) { a.value_sum.format = SumFormat::f16; }, "value_sum is f16, the task permits accumulator"},
      {[](Arithmetic& a) { a.score_sum.width = 8, a.score_sum.bits = 4; },
       "score_sum is accumulator, width 8, bits 4, the task permits accumulator"},
      {[](Arithmetic& a) { a.score_roundings = 16; }, "score_roundings is 16, the task permits up to 0"},
      {[](Arithmetic& a) { a.key_rounding.step = 0; }, "key_rounding is step of 0 rows, 0 columns"},
  };
  for (const auto& [change, text] : looser) EXPECT_EQ(excess(change).substr(0, std::string(text).size()), text);
  // Of double, float is looser.
  EXPECT_NE(excess([](Arithmetic&) {}, {}, DType::f64), "");
}

TEST(PermittedStatements, PartsAreAsManyAsKeysOrAFewHundred) {
  Arithmetic stated;
  stated.parts = 256;
  EXPECT_EQ(PermittedStatements().excess(stated, call_of(DType::f32)), "");
  stated.parts = 100000000;
  EXPECT_EQ(PermittedStatements().excess(stated, call_of(DType::f32)),
            "parts is 100000000, the task permits up to 256");
  stated.parts = 1000;
  EXPECT_EQ(PermittedStatements().excess(stated, call_of(DType::f32, 1000)), "");
}

TEST(PermittedStatements, EveryFieldHasARule) {
  // One without a rule would be complained of whatever it says.
  EXPECT_EQ(PermittedStatements().excess(Arithmetic(), call_of(DType::f32)), "");
  EXPECT_GT(stated_fields(Arithmetic()).size(), 40u);
}

TEST(PermittedStatements, OfOneResultCount) {
  const Change of_output = [](Arithmetic& a) {
    Rounding rounding;
    rounding.exp_ulps = 9;
    a.of_results.push_back({TensorId::out, rounding});
  };
  EXPECT_EQ(excess(of_output), "exp_ulps is 9, the task permits up to 2");
}

TEST(PermittedStatements, ATaskPermitsMore) {
  const Change bf16 = [](Arithmetic& a) { a.stored_weights = DType::bf16; };
  EXPECT_EQ(excess(bf16, {"stored_weights=bf16"}), "");
  EXPECT_EQ(excess(bf16, {"stored_weights=f16"}), "stored_weights is bf16, the task permits f32, f16");
  EXPECT_EQ(excess([](Arithmetic& a) { a.exp_ulps = 4; }, {"exp_ulps=4"}), "");
  EXPECT_EQ(excess([](Arithmetic& a) { a.exp_ulps = 5; }, {"exp_ulps=4"}), "exp_ulps is 5, the task permits up to 4");
  EXPECT_EQ(excess([](Arithmetic& a) { a.flush_to_zero = true; }, {"flush_to_zero"}), "");
  const Change wide = [](Arithmetic& a) { a.value_sum.format = SumFormat::f16, a.value_sum.width = 16; };
  EXPECT_EQ(excess(wide, {"value_sum=f16,width:16"}), "");
  EXPECT_NE(excess(wide, {"value_sum=f16"}), "");
  EXPECT_EQ(excess(wide, {"value_sum=any"}), "");
}

TEST(PermittedStatements, ConventionsAreThoseOfAttestUnlessATaskSaysMore) {
  Conventions stated;
  EXPECT_EQ(PermittedStatements().excess(stated), "");
  stated.accumulation_f32 = "f64";
  stated.same_bits = "repeat";
  EXPECT_EQ(PermittedStatements().excess(stated), "");
  stated.lse_base = "2";
  EXPECT_EQ(PermittedStatements().excess(stated), "the convention lse_base is \"2\", the task permits \"e\"");
  PermittedStatements permitted;
  permitted.permit("lse_base=2");
  EXPECT_EQ(permitted.excess(stated), "");
}

TEST(PermittedStatements, WordsThatSayNothing) {
  PermittedStatements permitted;
  for (const char* word :
       {"colour=red", "stored_weights", "stored_weights=blue", "stored_weights=i8", "exp_ulps=many", "division=slow",
        "flush_to_zero=perhaps", "value_sum=blue", "key_rounding=blue", "lse_base=7", "key_operand=f31", "=", ""})
    EXPECT_THROW(permitted.permit(word), UserError) << word;
}

TEST(StatementWatch, KeepsTheFirstExcessAndLetsNoBoundBeDerivedFromIt) {
  const auto watch = std::make_shared<StatementWatch>(PermittedStatements());
  const IsolationOptions options = StatementWatch::heard({}, watch);
  Arithmetic wide;
  wide.exp_ulps = 50;
  options.hears_arithmetic("mine", {}, Arithmetic());
  EXPECT_EQ(watch->excess(), "");
  EXPECT_THROW(options.hears_arithmetic("mine", {}, wide), BackendError);
  wide.exp_ulps = 60;
  EXPECT_THROW(options.hears_arithmetic("mine", {}, wide), BackendError);
  EXPECT_EQ(watch->excess(), "exp_ulps is 50, the task permits up to 2");
}

}  // namespace
}  // namespace attest
