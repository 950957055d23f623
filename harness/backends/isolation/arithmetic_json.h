// Arithmetic as a worker sends it. Every field must be named here: one left out arrives as its default.
#pragma once

#include <optional>
#include <string>

#include "harness/backends/isolation/messages.h"
#include "reference/arithmetic/arithmetic.h"
#include "reference/call/tensor_table.h"

// clang-format off
#define ATTEST_ARITHMETIC_FIELDS(EACH)                                                                                \
  NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(EACH, accumulator, stored_weights, exp_ulps, log_ulps, tanh_ulps, base2,   \
                                           scale, division, key_block, lazy_threshold, normalised_before_storage,     \
                                           stored_scores, score_stores, sum_of_stored, flush_to_zero, state_chunk,    \
                                           parts, stored_parts, fused_log2e, no_maximum, weights_from_lse,            \
                                           kept_weights, delta_from_weights, stored_score_gradients,                  \
                                           stored_head_gradients, varying_order, query_operand, key_operand,          \
                                           value_operand, weight_operand, score_sum, value_sum, weight_sum,           \
                                           score_roundings, output_roundings, weight_factor, exp_absolute, exp_argument,   \
                                           rescale_ulps, query_rounding, key_rounding, value_rounding,                \
                                           weight_rounding))
// clang-format on

namespace attest {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Sum, format, promote, width, bits, directed)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(OperandRounding, step, rows, columns, slack, power_of_two, directed, mean_removed,
                                   mean_format)

/// The key under which results stand that are rounded otherwise, each by its name with all fields.
inline constexpr const char* kOfResults = "of_results";

inline void to_json(nlohmann::json& nlohmann_json_j, const Arithmetic& nlohmann_json_t) {
  ATTEST_ARITHMETIC_FIELDS(NLOHMANN_JSON_TO)
  for (const ResultRounding& one : nlohmann_json_t.of_results)
    nlohmann_json_j[kOfResults][std::string(row_of(one.result).name)] = Arithmetic{one.rounding, {}};
}

inline void from_json(const nlohmann::json& nlohmann_json_j, Arithmetic& nlohmann_json_t) {
  ATTEST_ARITHMETIC_FIELDS(NLOHMANN_JSON_FROM)
  if (!nlohmann_json_j.contains(kOfResults)) return;
  for (const TensorRow& row : tensor_rows()) {
    const auto found = nlohmann_json_j[kOfResults].find(std::string(row.name));
    if (is_output(row.id) && found != nlohmann_json_j[kOfResults].end())
      nlohmann_json_t.of_results.push_back({row.id, found->get<Arithmetic>()});
  }
}

}  // namespace attest

#undef ATTEST_ARITHMETIC_FIELDS
