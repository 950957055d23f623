#include "harness/backends/plugin/arithmetic_rules.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace attest {
namespace {

TEST(ArithmeticRules, EachRuleIsNamed) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();
  const std::vector<std::pair<Rounding, std::string>> rules = {
      {{}, "sound"},
      {{.accumulator = DType::bf16}, "accumulator must be f32 or f64"},
      {{.exp_ulps = kNaN}, "exp_ulps is nan: it must be finite and not negative"},
      {{.log_ulps = -1}, "log_ulps is -1: it must be finite and not negative"},
      {{.tanh_ulps = kInf}, "tanh_ulps is inf: it must be finite and not negative"},
      {{.lazy_threshold = -2}, "lazy_threshold is -2: it must be finite and not negative"},
      {{.key_block = -4}, "key_block is -4: it must not be negative"},
      {{.state_chunk = -1}, "state_chunk is -1: it must not be negative"},
      {{.score_stores = 17}, "score_stores is 17, and not from 0 to 16"},
      {{.scale = ScalePlacement::folded_log2e}, "scale is folded_log2e without base2"},
      {{.base2 = true, .scale = ScalePlacement::folded_log2e}, "sound"},
      {{.parts = -1}, "parts is -1: it must not be negative"},
      {{.fused_log2e = true}, "sound"},
      {{.base2 = true, .fused_log2e = true}, "fused_log2e with base2: it takes scores in base e"},
      {{.no_maximum = true}, "sound"},
      {{.weight_operand = OperandFormat::tf32}, "sound"},
      {{.stored_weights = DType::bf16, .weight_operand = OperandFormat::tf32},
       "weight_operand with stored_weights: weights are rounded once on their way into P*V"},
      {{.value_sum = {.format = SumFormat::f16, .promote = 32, .width = 4, .bits = 13, .directed = true}}, "sound"},
      {{.score_sum = {.promote = -1}}, "score_sum.promote is -1: it must not be negative"},
      {{.value_sum = {.width = 0}}, "value_sum.width is 0, and not from 1 to 1024"},
      {{.weight_sum = {.bits = 53}}, "weight_sum.bits is 53, and not from 0 to 52"},
      {{.score_sum = {.format = SumFormat::exact, .width = 4}},
       "score_sum: an exact sum has no promote, width, bits or directed"},
      {{.score_roundings = 17}, "score_roundings is 17, and not from 0 to 16"},
      {{.weight_operand = OperandFormat::int8, .weight_factor = 127}, "sound"},
      {{.key_operand = OperandFormat::int8}, "key_operand is int8: integers are for weight_operand alone"},
      {{.weight_operand = OperandFormat::e4m3, .weight_factor = 0.5}, "weight_factor is 0.5, and not from 1 to 65536"},
      {{.weight_factor = 256}, "weight_factor without weight_operand: it is for weights that are rounded"},
      {{.exp_absolute = 0.5}, "exp_absolute is 0.5, and not from 0 to a half"},
      {{.rescale_ulps = kInfinity}, "rescale_ulps is inf: it must be finite"},
      {{.output_roundings = -1}, "output_roundings is -1, and not from 0 to 16"},
      {{.key_block = 16, .no_maximum = true},
       "no_maximum with key_block, lazy_threshold or parts: without a maximum nothing is rescaled or merged"}};
  for (const auto& [rounding, fault] : rules) EXPECT_EQ(fault_of(Arithmetic{rounding, {}}).value_or("sound"), fault);
}

}  // namespace
}  // namespace attest
