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
      {{.key_operand = OperandFormat::int8}, "sound"},
      {{.key_operand = OperandFormat::u8}, "key_operand is u8: that is for weight_operand alone"},
      {{.exp_argument = OperandFormat::int4}, "exp_argument is int4: operands of products alone have that"},
      {{.key_operand = OperandFormat::int8, .key_rounding = {.step = 0, .rows = 64, .mean_removed = true}}, "sound"},
      {{.key_rounding = {.step = 0}}, "key_rounding.step and .directed without a format: exact has none"},
      {{.key_operand = OperandFormat::int8, .key_rounding = {.step = -1}},
       "key_rounding.step is -1, and neither 0 nor from 2^-60 to 2^60"},
      {{.key_operand = OperandFormat::int8, .key_rounding = {.rows = 2}},
       "key_rounding.rows, .columns and .power_of_two are of a step of 0"},
      {{.key_operand = OperandFormat::int8, .key_rounding = {.step = 0, .rows = -2}},
       "key_rounding.rows and .columns must not be negative"},
      {{.key_operand = OperandFormat::int8, .key_rounding = {.slack = 1}},
       "key_rounding.slack is 1, and not from 0 to a quarter"},
      {{.query_operand = OperandFormat::int8, .query_rounding = {.mean_removed = true}},
       "query_rounding.mean_removed is for keys"},
      {{.key_rounding = {.mean_format = OperandFormat::bf16}},
       "key_rounding.mean_format is of a mean that is removed, and not of integers"},
      {{.value_operand = OperandFormat::bf16x3, .value_rounding = {.step = 0}},
       "value_rounding.step of bf16x3: it has none"},
      {{.weight_operand = OperandFormat::int8, .weight_rounding = {.step = 0, .columns = 1}},
       "weight_rounding.columns: weights have none"},
      {{.weight_operand = OperandFormat::int8, .weight_rounding = {.step = 0.5}},
       "weight_rounding.step is 0 or 1: weight_factor is the other way round"},
      {{.weight_operand = OperandFormat::f16, .weight_rounding = {.step = 0}},
       "weight_rounding.step of 0 is for formats of 8 bits and fewer"},
      {{.weight_operand = OperandFormat::e4m3, .weight_factor = 2, .weight_rounding = {.step = 0}},
       "weight_factor with weight_rounding.step of 0: the step is the factor"},
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
