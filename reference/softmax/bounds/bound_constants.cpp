#include "reference/softmax/bounds/bound_constants.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace attest {

BoundConstants::BoundConstants(const Call& p, const Producer& producer) : arithmetic(producer.arithmetic) {
  const Arithmetic& a = arithmetic;
  const auto storing_of = [&](TensorId result) { return Storing(a, producer.type_of(p, result)); };
  storing = storing_of(TensorId::out);
  storing_lse = storing_of(TensorId::lse);
  storing_max = storing_of(TensorId::row_max);
  storing_sum = storing_of(TensorId::row_sum);
  storing_raw = storing_of(TensorId::raw);
  storing_capped = storing_of(TensorId::capped);
  storing_biased = storing_of(TensorId::biased);
  storing_weights = storing_of(TensorId::weights);
  u = unit_roundoff(a.accumulator);
  e_exp = 2 * u * a.exp_ulps;
  e_log = 2 * u * a.log_ulps;
  e_tanh = 2 * u * a.tanh_ulps;
  const bool scores_stored = a.score_stores > 0 && narrower(a.stored_scores, a.accumulator);
  u_scores = scores_stored ? unit_roundoff(a.stored_scores) : 0;
  eta_scores = scores_stored ? underflow_unit(a.stored_scores, a.flush_to_zero) : 0;
  const FormatRounding of_weights = rounding_of_weights(a);
  u_weights = of_weights.u;
  eta = underflow_unit(a.accumulator, a.flush_to_zero);
  eta_weights = of_weights.eta;
  largest_weight = of_weights.largest;
  query = rounding_of(a.query_operand, a.query_rounding, a.flush_to_zero);
  key = rounding_of(a.key_operand, a.key_rounding, a.flush_to_zero);
  value = rounding_of(a.value_operand, a.value_rounding, a.flush_to_zero);
  removes_mean = a.key_rounding.mean_removed;
  steps_scores = removes_mean || has_step(a.query_operand, a.query_rounding) || has_step(a.key_operand, a.key_rounding);
  steps_values = has_step(a.value_operand, a.value_rounding);
  rounds_values = a.value_operand != OperandFormat::exact;
  dynamic_eta = attest::dynamic_eta(a);
  if (dynamic_eta > 0) largest_weight_in_steps = 2 * rounding_of(a.weight_operand, a.flush_to_zero).largest;
  score_products = products_of(a.query_operand, a.key_operand);
  value_products = products_of(a.value_operand, a.weight_operand);
  loses_scores = !keeps_non_finite(a.query_operand) || !keeps_non_finite(a.key_operand);
  loses_values = !keeps_non_finite(a.value_operand) || value_products > 1;
  const bool has_nan = a.weight_operand != OperandFormat::e2m1 && !is_integer(a.weight_operand);
  loses_weights = !has_nan || (a.weight_operand != OperandFormat::exact && a.weight_rounding.step == 0);
  rounds_scores = steps_scores || query.u > 0 || key.u > 0 || p.prepares_operands();
  // A root of a sum of D squares, a division by it and a product; then two products and their sum.
  const double of_norm = p.norm ? gamma(static_cast<double>(p.key_dim) / 2 + 12) : 0;
  if (p.prepares_operands()) of_preparation = both(of_norm, p.rope != Rope::none ? gamma(2) : 0) * (1 + 0x1p-6);
  of_operands = both(query.u, key.u);
  half_range = a.accumulator == DType::f64 ? 0x1p1023 : 0x1p127;
  const double in_base = a.base2 || a.fused_log2e ? std::numbers::log2e : 1;  // scores are brought into these units
  largest_score = largest_held(scores_stored ? a.stored_scores : a.accumulator) / in_base;
  largest_step = scores_stored ? largest_score : kInfinity;
  lag = std::exp(a.lazy_threshold);
  // The difference is rounded; a fused multiply-add rounds once, and so is the log2(e) in it. Without a maximum
  // there is no difference, only the multiplication.
  shift_roundings = a.fused_log2e ? 2 : a.no_maximum ? 0 : 1;
  blocks = blocks_of(a, p.key_length);
  if (p.sinks) blocks = std::max(blocks, 1.0);  // the sink enters like a block of its own
  narrows_weights = attest::narrows_weights(a);
  log_factor = std::log(a.weight_factor);
  const FormatRounding argument = rounding_of(a.exp_argument, a.flush_to_zero);
  u_argument = argument.u;
  eta_argument = argument.eta;
  if (u_argument > 0) largest_argument = argument.largest * (a.base2 || a.fused_log2e ? std::numbers::ln2 : 1);
  const double e_rescale = a.rescale_ulps < 0 ? e_exp : 2 * u * a.rescale_ulps;
  of_rescaling = blocks * (e_rescale + u + eta_argument);
  exp_absolute = a.exp_absolute;
  // What rescales is off by as much, and multiplies weights of up to exp(T).
  if (a.rescale_ulps < 0 && exp_absolute > 0) {
    exp_absolute *= (1 + blocks * std::exp(a.lazy_threshold)) * std::pow(1 + exp_absolute, blocks);
  }
  scale_roundings = attest::scale_roundings(a) + (p.has_head_scales() ? 1 : 0) + (p.has_query_scales() ? 1 : 0);
  const double of_scales = scale_roundings;
  if (p.softcap) {
    const bool rounded =
        a.accumulator == DType::f32 && static_cast<double>(static_cast<float>(*p.softcap)) != *p.softcap;
    scale_roundings += rounded ? 2 : 1;
    const double roundings = (a.base2 ? 3 : 1) + (rounded ? 1 : 0);  // but for tanh's
    of_cap = both(e_tanh, gamma(roundings + (p.unscaled_cap ? of_scales : 0)));
    unscaled_cap = p.unscaled_cap;
  }
  division_roundings = attest::division_roundings(a.division);
  parts = static_cast<double>(a.parts) + (a.parts > 0 && p.sinks ? 1 : 0);  // a sink may be merged like a part
  const bool parts_stored = a.parts > 0 && narrower(a.stored_parts, a.accumulator);
  u_parts = parts_stored ? unit_roundoff(a.stored_parts) : 0;
  eta_parts = parts_stored ? underflow_unit(a.stored_parts, a.flush_to_zero) : 0;
  largest_part = parts_stored ? largest_held(a.stored_parts) : kInfinity;
  key_dim = static_cast<double>(p.key_dim);
  const double scale = std::fabs(p.scale_value());
  // Each scale of codes is multiplied into an operand, a sum or another scale: one rounding of each product.
  scales_codes = p.has_stored_scales();
  value_roundings = p.v_scale || (p.latent && p.k_scale) ? 1 : 0;
  const double all_scale_roundings = scale_roundings + (p.q_scale ? 1 : 0) + (p.k_scale ? 1 : 0);
  key_length = static_cast<double>(p.key_length);
  of_product = gamma(score_products * key_dim + all_scale_roundings);
  own_sums = sums_otherwise(a);
  if (a.score_sum != Sum()) {
    const SumCost of_scores = cost_of(a.score_sum, a, score_products * key_dim, score_products * key_dim, 0);
    of_product = both(of_scores.relative, gamma(all_scale_roundings));
    lost_score_sum = of_scores.lost;
    rounds_scores = true;
  }
  if (score_products > 1) of_product *= kSizeOfProducts;
  largest_score_sum = rounding_of(a.score_sum, a).largest / 2;
  largest_value_sum = std::min(half_range, rounding_of(a.value_sum, a).largest / 2);
  largest_weight_sum = rounding_of(a.weight_sum, a).largest / 2;
  // A subnormal scale is rounded to a multiple of eta, or flushed.
  smallest_normal = underflow_unit(a.accumulator, false) / (2 * u);
  if (scale > 0 && scale < smallest_normal) of_scale = eta / scale;
  if (of_scale > 0) of_product = both(of_product, of_scale);
  softcap = p.softcap;
  wants_scores = p.wants_scores();
  has_sinks = p.sinks;
  of_reference = arithmetic == reference_arithmetic();
}

bool BoundConstants::holds(const ScaleRange& scales, const ScoreScale& scale) const {
  if (!scales_codes) return true;
  // Codes are 0 or from 2^-16 to 57344.
  const double most = arithmetic.accumulator == DType::f64 ? 0x1p500 : 0x1p60;
  if (!(scales.smallest >= 1 / most && scales.largest <= most)) return false;
  return (scale.least == 0 || scale.least * scales.smallest >= smallest_normal) &&
         scale.larger * std::numbers::log2e * scales.largest <= half_range;
}

}  // namespace attest
