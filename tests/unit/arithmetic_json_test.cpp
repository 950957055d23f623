// How a backend says that it rounds, on its way from a worker.
#include "harness/backends/isolation/arithmetic_json.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace attest {
namespace {

TEST(ArithmeticJson, BringsEveryFieldOver) {
  const Rounding rounding{.accumulator = DType::f64,
                          .stored_weights = DType::bf16,
                          .exp_ulps = 3,
                          .log_ulps = 4,
                          .tanh_ulps = 5,
                          .base2 = true,
                          .scale = ScalePlacement::split_root,
                          .division = Division::opencl_division,
                          .key_block = 7,
                          .lazy_threshold = 8.5,
                          .normalised_before_storage = true,
                          .stored_scores = DType::f16,
                          .score_stores = 9,
                          .sum_of_stored = true,
                          .flush_to_zero = true,
                          .state_chunk = 10,
                          .parts = 11,
                          .stored_parts = DType::bf16,
                          .fused_log2e = true,
                          .no_maximum = true,
                          .weights_from_lse = true,
                          .kept_weights = true,
                          .delta_from_weights = true,
                          .stored_score_gradients = DType::bf16,
                          .stored_head_gradients = DType::f16,
                          .varying_order = true,
                          .query_operand = OperandFormat::tf32,
                          .key_operand = OperandFormat::bf16,
                          .value_operand = OperandFormat::f16,
                          .weight_operand = OperandFormat::tf32,
                          .score_sum = {.format = SumFormat::f16, .promote = 32},
                          .value_sum = {.width = 16, .bits = 13},
                          .weight_sum = {.directed = true},
                          .score_roundings = 3,
                          .output_roundings = 2,
                          .weight_factor = 256,
                          .exp_absolute = 1e-3,
                          .exp_argument = OperandFormat::f16,
                          .rescale_ulps = 1,
                          .query_rounding = {.step = 0, .rows = 128},
                          .key_rounding = {.mean_removed = true, .mean_format = OperandFormat::bf16},
                          .value_rounding = {.columns = 1, .power_of_two = true},
                          .weight_rounding = {.slack = 0.125, .directed = true}};
  const Arithmetic sent{rounding, {{TensorId::lse, {.log_ulps = 6}}, {TensorId::present_state, {}}}};
  const Arithmetic usual;
  // All of them by name: with a field more this doesn't compile. A field that stays behind arrives as its default.
  const auto& [accumulator, stored_weights, exp_ulps, log_ulps, tanh_ulps, base2, scale, division, key_block,
               lazy_threshold, normalised_before_storage, stored_scores, score_stores, sum_of_stored, flush_to_zero,
               state_chunk, parts, stored_parts, fused_log2e, no_maximum, weights_from_lse, kept_weights,
               delta_from_weights, stored_score_gradients, stored_head_gradients, varying_order, query_operand,
               key_operand, value_operand, weight_operand, score_sum, value_sum, weight_sum, score_roundings,
               output_roundings, weight_factor, exp_absolute, exp_argument, rescale_ulps, query_rounding, key_rounding,
               value_rounding, weight_rounding] = rounding;
  EXPECT_TRUE(
      accumulator != usual.accumulator && stored_weights != usual.stored_weights && exp_ulps != usual.exp_ulps &&
      log_ulps != usual.log_ulps && tanh_ulps != usual.tanh_ulps && base2 != usual.base2 && scale != usual.scale &&
      division != usual.division && key_block != usual.key_block && lazy_threshold != usual.lazy_threshold &&
      normalised_before_storage != usual.normalised_before_storage && stored_scores != usual.stored_scores &&
      score_stores != usual.score_stores && sum_of_stored != usual.sum_of_stored &&
      flush_to_zero != usual.flush_to_zero && state_chunk != usual.state_chunk && parts != usual.parts &&
      stored_parts != usual.stored_parts && fused_log2e != usual.fused_log2e && no_maximum != usual.no_maximum &&
      weights_from_lse != usual.weights_from_lse && kept_weights != usual.kept_weights &&
      delta_from_weights != usual.delta_from_weights && stored_score_gradients != usual.stored_score_gradients &&
      stored_head_gradients != usual.stored_head_gradients && varying_order != usual.varying_order &&
      query_operand != usual.query_operand && key_operand != usual.key_operand &&
      value_operand != usual.value_operand && weight_operand != usual.weight_operand && score_sum != usual.score_sum &&
      value_sum != usual.value_sum && weight_sum != usual.weight_sum && score_roundings != usual.score_roundings &&
      output_roundings != usual.output_roundings && weight_factor != usual.weight_factor &&
      exp_absolute != usual.exp_absolute && exp_argument != usual.exp_argument && rescale_ulps != usual.rescale_ulps &&
      query_rounding != usual.query_rounding && key_rounding != usual.key_rounding &&
      value_rounding != usual.value_rounding && weight_rounding != usual.weight_rounding);
  const Json message = sent;
  EXPECT_EQ(message.at("division"), "opencl_division");
  EXPECT_EQ(Json::parse(message.dump()).get<Arithmetic>(), sent);
  Json other = message;
  other["division"] = "by guesswork";
  EXPECT_THROW((void)other.get<Arithmetic>(), std::invalid_argument);
}

}  // namespace
}  // namespace attest
