#include "harness/backends/plugin/arithmetic_rules.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "reference/arithmetic/rounding.h"

namespace attest {
namespace {

/// What is wrong with how terms are added.
std::optional<std::string> fault_of(const Sum& sum) {
  if (sum.promote < 0) return fmt::format(".promote is {}: it must not be negative", sum.promote);
  if (sum.width < 1 || sum.width > 1024) return fmt::format(".width is {}, and not from 1 to 1024", sum.width);
  if (sum.bits < 0 || sum.bits > 52) return fmt::format(".bits is {}, and not from 0 to 52", sum.bits);
  if (sum.format == SumFormat::exact && sum != Sum{.format = SumFormat::exact})
    return ": an exact sum has no promote, width, bits or directed";
  return std::nullopt;
}

bool has_reals(OperandFormat format) { return format <= OperandFormat::e5m2; }

/// What is wrong with how an operand is rounded.
std::optional<std::string> fault_of(const OperandRounding& own, OperandFormat format, bool of_key, bool of_weights) {
  if (!(own.step == 0 || (own.step >= 0x1p-60 && own.step <= 0x1p60)))
    return fmt::format(".step is {}, and neither 0 nor from 2^-60 to 2^60", own.step);
  if (own.rows < 0 || own.columns < 0) return ".rows and .columns must not be negative";
  if (!(own.slack >= 0 && own.slack <= 0.25))
    return fmt::format(".slack is {}, and not from 0 to a quarter", own.slack);
  if (own.step != 0 && (own.rows > 0 || own.columns > 0 || own.power_of_two))
    return ".rows, .columns and .power_of_two are of a step of 0";
  if (own.mean_removed && !of_key) return ".mean_removed is for keys";
  if (own.mean_format != OperandFormat::exact && !(own.mean_removed && has_reals(own.mean_format)))
    return ".mean_format is of a mean that is removed, and not of integers";
  const bool steps = own.step != 1 || own.directed;
  if (steps && format == OperandFormat::exact) return ".step and .directed without a format: exact has none";
  if (format == OperandFormat::bf16x3 && own.step != 1) return ".step of bf16x3: it has none";
  if (of_weights && own.columns > 0) return ".columns: weights have none";
  if (of_weights && own.step != 0 && own.step != 1) return ".step is 0 or 1: weight_factor is the other way round";
  if (of_weights && own.step == 0 && (has_reals(format) && format <= OperandFormat::f16))
    return ".step of 0 is for formats of 8 bits and fewer";
  return std::nullopt;
}

}  // namespace

std::optional<std::string> fault_of(const Arithmetic& a) {
  for (const DType stored :
       {a.stored_weights, a.stored_scores, a.stored_parts, a.stored_score_gradients, a.stored_head_gradients}) {
    if (!is_floating(stored)) return "what is stored between steps must be of a floating type";
  }
  if (a.accumulator != DType::f32 && a.accumulator != DType::f64) return "accumulator must be f32 or f64";
  for (const auto& [member, value] :
       {std::pair("exp_ulps", a.exp_ulps), std::pair("log_ulps", a.log_ulps), std::pair("tanh_ulps", a.tanh_ulps),
        std::pair("lazy_threshold", a.lazy_threshold)}) {
    if (!std::isfinite(value) || value < 0)
      return fmt::format("{} is {}: it must be finite and not negative", member, value);
  }
  if (a.key_block < 0) return fmt::format("key_block is {}: it must not be negative", a.key_block);
  if (a.state_chunk < 0) return fmt::format("state_chunk is {}: it must not be negative", a.state_chunk);
  if (a.score_stores < 0 || a.score_stores > 16)
    return fmt::format("score_stores is {}, and not from 0 to 16", a.score_stores);
  if (a.scale == ScalePlacement::folded_log2e && !a.base2) return "scale is folded_log2e without base2";
  if (a.weight_operand != OperandFormat::exact && narrower(a.stored_weights, a.accumulator))
    return "weight_operand with stored_weights: weights are rounded once on their way into P*V";
  for (const auto& [member, sum] : {std::pair("score_sum", a.score_sum), std::pair("value_sum", a.value_sum),
                                    std::pair("weight_sum", a.weight_sum)}) {
    if (const auto fault = fault_of(sum)) return fmt::format("{}{}", member, *fault);
  }
  for (const auto& [member, format] :
       {std::pair("query_operand", a.query_operand), std::pair("key_operand", a.key_operand),
        std::pair("value_operand", a.value_operand)}) {
    if (format == OperandFormat::u8) return fmt::format("{} is u8: that is for weight_operand alone", member);
  }
  if (!has_reals(a.exp_argument))
    return fmt::format("exp_argument is {}: operands of products alone have that", name_of(a.exp_argument));
  struct Stated {
    const char* member;
    const OperandRounding& rounding;
    OperandFormat format;
  };
  for (const Stated& one : {Stated{"query_rounding", a.query_rounding, a.query_operand},
                            Stated{"key_rounding", a.key_rounding, a.key_operand},
                            Stated{"value_rounding", a.value_rounding, a.value_operand},
                            Stated{"weight_rounding", a.weight_rounding, a.weight_operand}}) {
    const bool of_weights = &one.rounding == &a.weight_rounding;
    if (const auto fault = fault_of(one.rounding, one.format, &one.rounding == &a.key_rounding, of_weights))
      return fmt::format("{}{}", one.member, *fault);
  }
  if (a.weight_rounding.step == 0 && a.weight_factor != 1)
    return "weight_factor with weight_rounding.step of 0: the step is the factor";
  if (!(a.weight_factor >= 1 && a.weight_factor <= 0x1p16))
    return fmt::format("weight_factor is {}, and not from 1 to 65536", a.weight_factor);
  if (a.weight_factor != 1 && a.weight_operand == OperandFormat::exact)
    return "weight_factor without weight_operand: it is for weights that are rounded";
  if (!(a.exp_absolute >= 0 && a.exp_absolute < 0.5))
    return fmt::format("exp_absolute is {}, and not from 0 to a half", a.exp_absolute);
  if (!std::isfinite(a.rescale_ulps)) return fmt::format("rescale_ulps is {}: it must be finite", a.rescale_ulps);
  for (const auto& [member, count] :
       {std::pair("score_roundings", a.score_roundings), std::pair("output_roundings", a.output_roundings)}) {
    if (count < 0 || count > 16) return fmt::format("{} is {}, and not from 0 to 16", member, count);
  }
  if (a.parts < 0) return fmt::format("parts is {}: it must not be negative", a.parts);
  if (a.fused_log2e && a.base2) return "fused_log2e with base2: it takes scores in base e";
  if (a.no_maximum && (a.key_block > 0 || a.lazy_threshold > 0 || a.parts > 0))
    return "no_maximum with key_block, lazy_threshold or parts: without a maximum nothing is rescaled or merged";
  for (const ResultRounding& one : a.of_results) {
    if (auto fault = fault_of(Arithmetic{one.rounding, {}})) return std::string(name_of(one.result)) + ": " + *fault;
  }
  return std::nullopt;
}

}  // namespace attest
