// What an arithmetic costs in one call, whatever its rows: the constants of the formulas in error_bound.h, found once
// for many rows.
#pragma once

#include <optional>

#include "reference/arithmetic/producer.h"
#include "reference/arithmetic/rounding.h"
#include "reference/arithmetic/sums.h"
#include "reference/call/call.h"
#include "reference/softmax/attention.h"

namespace attest {

struct BoundConstants {
  BoundConstants(const Call& call, const Producer& producer);

  Arithmetic arithmetic;
  double u = 0, e_exp = 0, e_log = 0, e_tanh = 0, u_weights = 0, u_scores = 0;
  double eta = 0, eta_weights = 0, eta_scores = 0, half_range = 0;
  double largest_score = 0;    ///< beyond it a biased score may become an infinity
  double largest_step = 0;     ///< likewise what is stored on the way to it
  double lag = 0;              ///< how large a weight may be before the running maximum follows
  double shift_roundings = 0;  ///< of the argument of exp, each relative to its distance from the maximum
  Storing storing, storing_lse, storing_max, storing_sum, storing_raw, storing_capped, storing_biased,
      storing_weights;  ///< of each result
  double blocks = 0, scale_roundings = 0, division_roundings = 0;
  FormatRounding query, key, value;  ///< of the operands of the products
  bool rounds_scores = false;        ///< those of Q*K are rounded, or prepared
  bool rounds_values = false;        ///< v is
  bool steps_scores = false;         ///< q or k has steps of its own, or k is taken less its mean: SteppedScores
  bool removes_mean = false;
  bool steps_values = false;           ///< v has
  double dynamic_eta = 0;              ///< of weights with steps of groups, relative to the largest of a group
  double largest_weight_in_steps = 1;  ///< in units of those
  double score_products = 1;           ///< that stand for one
  double value_products = 1;           ///< likewise
  double largest_weight = kInfinity;   ///< beyond it a weight in P*V becomes an infinity
  double parts = 0, u_parts = 0, eta_parts = 0, largest_part = 0;  ///< merged results, and the type in which they wait
  bool narrows_weights = false;             ///< they are held in 8 bits, or multiplied by a factor
  double log_factor = 0;                    ///< the factor's logarithm
  double u_argument = 0, eta_argument = 0;  ///< of what enters exp, besides shift_roundings
  double largest_argument = kInfinity;      ///< in nats: arguments beyond it stay there
  double of_rescaling = 0;                  ///< relative, of what passes all rescalings: r_B
  double exp_absolute = 0;                  ///< of a weight, with what rescalings add to it
  bool own_sums = false;                    ///< how products or weights are added is stated
  double largest_score_sum = kInfinity;     ///< beyond it a sum of |q_t * k_jt| may become an infinity
  double lost_score_sum = 0;                ///< what underflows in it
  double largest_value_sum = 0;             ///< likewise of |p_j * v_jc|
  double largest_weight_sum = kInfinity;    ///< likewise of weights
  double key_dim = 0, key_length = 0;
  double of_product = 0;      ///< relative, of a scaled product of q and k
  double of_operands = 0;     ///< relative, of a product of q and k that were rounded
  double of_scale = 0;        ///< relative, of the scale where it is subnormal
  double of_preparation = 0;  ///< of a component of q or k that is normalised or rotated: PreparationCost
  std::optional<double> softcap;
  double of_cap = 0;          ///< relative, of the cap's own roundings
  bool unscaled_cap = false;  ///< the cap stands before the scale
  double smallest_normal = 0;
  /// Whether infinities and NaN of q and k, of v, and of weights may become others on their way into a product.
  bool loses_scores = false, loses_values = false, loses_weights = false;
  bool scales_codes = false;   ///< of q, k or v, which are stored in 8 bits
  double value_roundings = 0;  ///< of a value, or of what it becomes, by its scale
  bool wants_scores = false, has_sinks = false;
  bool of_reference = false;  ///< the arithmetic is that of reference/

  /// Whether scales, and their products with the call's, stay far inside the range: then no code that is scaled
  /// underflows or overflows. Not so, nothing is proved.
  bool holds(const ScaleRange& scales, const ScoreScale& scale = {}) const;
  bool hold_codes(const Row& row) const { return holds(row.code_scales, row.scale); }
  double gamma(double k) const { return k * u / (1 - k * u); }
  /// How the n products of P*V and the n weights of a row are added. `roundings`: more of the accumulator.
  SumCost of_values(double n, double roundings = 0) const {
    SumCost cost = added(arithmetic.value_sum, value_products * n, value_products * n + blocks + roundings, roundings,
                         value_products);
    if (value_products > 1) cost.relative *= kSizeOfProducts;
    return cost;
  }
  SumCost of_weights(double n) const { return added(arithmetic.weight_sum, n, n + blocks + 2 * parts, 2 * parts); }
  /// (1 + a) * (1 + b) - 1. In float64 `1 + u` is 1: sums are taken of the errors alone.
  static double both(double a, double b) { return a + b + a * b; }

 private:
  /// Those that stand for one are this much larger together.
  static constexpr double kSizeOfProducts = 1.02;
  SumCost added(const Sum& sum, double n, double plain, double roundings, double products = 1) const {
    if (sum == Sum()) return {gamma(plain), 0};
    const SumCost cost = cost_of(sum, arithmetic, n, products * (key_length + (has_sinks ? 1 : 0)), blocks + parts);
    return {both(cost.relative, gamma(roundings)), cost.lost};
  }
};

}  // namespace attest
