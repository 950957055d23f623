// Scaled dot-product attention, one query row at a time, in float64. This is what attention means here.
//
// clang-format off
//   raw      t_ij = scale * <q_i, k_j>
//   capped   c_ij = softcap * tanh(t_ij / softcap), or t_ij without a cap
//   biased   s_ij = c_ij + additive_ij - slope_h * |i + offset - j|
//   mask     m_ij = the boolean mask is true, or additive_ij != -inf; true without a mask
//   visible  i sees j = lengths AND segment AND ((causal AND window) OR prefix) AND blocks AND m_ij
//   sum      z_i = sum over visible j of exp(s_ij), plus exp(sink_h) with a sink
//   weights  p_ij = exp(s_ij) / z_i where i sees j, else 0
//   output   o_i = sum over visible j of p_ij * v_j; under dropout each term times keep_ij / (1 - p_drop)
//   lse      L_i = log(z_i), the natural logarithm
// clang-format on
//
// A row that sees nothing has weights 0, output 0 and lse -inf (lse = sink_h with a sink). Keys that a row does not see
// leave every sum, so that NaN or infinity stored there never reaches it; NaN that it sees does.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "reference/call/call.h"
#include "reference/call/tensors.h"
#include "reference/softmax/operands.h"

namespace attest {

/// Where a query and a key stand to each other once segments are taken apart.
struct Placement {
  bool same_segment = true;
  std::int64_t diagonal = 0, key = 0;  ///< within the segment; `key == diagonal` is on the diagonal
};
Placement locate(const Call& call, std::int64_t b, std::int64_t i, std::int64_t j);

/// Whether query i of head h in batch b sees key j.
bool visible(const Call& call, const Inputs& inputs, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j);

/// Sizes of the scales that codes other than 0 are multiplied by, and 1.
struct ScaleRange {
  double smallest = 1, largest = 1;

  void add(double scale) {
    smallest = std::min(smallest, std::fabs(scale));
    largest = std::max(largest, std::fabs(scale));
  }
  /// Of products of both.
  ScaleRange operator*(const ScaleRange& other) const { return {smallest * other.smallest, largest * other.largest}; }
  /// How much larger what stands on the way to a scaled number may be than that, or be made behind it: kernels scale
  /// an operand, a sum, or some of both.
  double ratio() const { return largest / smallest; }
};

/// additive_ij and the ALiBi term, which are added to the capped score one after the other.
struct ScoreBias {
  double additive = 0, alibi = 0;
};

/// Every stage of one query row. Lists over keys have Lk entries; hidden keys hold raw, capped and biased
/// scores too, and weight 0. Keys that are not stored (beyond a length in packed or paged storage) count as 0.
struct Row {
  std::vector<char> seen;  ///< 1 where visible
  std::vector<double> raw, capped, biased, weights;
  std::vector<ScoreBias> biases;     ///< of each key; empty where the call adds nothing to scores
  std::vector<double> factors;       ///< keep / (1 - p_drop) for each key; empty without dropout
  double sink = -kInfinity;          ///< the head's sink logit
  std::vector<double> abs_products;  ///< |scale| * sum_t |q_t * k_jt|, for the error bound
  ScoreScale scale;                  ///< of the scores
  PreparationCost of_query;          ///< of q_i; empty where it is multiplied as it is stored
  std::vector<double> stored_keys;   ///< |scale| * sum_t |q_t| * PreparationCost::stored of key j; empty likewise
  std::vector<double> preparations;  ///< |scale| * sum_t of what q_t and k_jt cost the product; empty likewise
  std::vector<double> output;        ///< Dv entries
  double max = -kInfinity;           ///< largest visible biased score, or the sink
  double sum = 0;                    ///< sum over visible keys and the sink of exp(score - max)
  double lse = -kInfinity;
  double largest_product = 0;  ///< largest sum of |q_t*k_t|, whichever factors of the scale it has, for the range check
  double query_abs_sum = 0;    ///< sum_t |q_t|, of the row that is multiplied
  std::int64_t visible_count = 0;
  ScaleRange code_scales;  ///< of q and of the head's keys

  /// What is added to the score of key j, seen or not.
  ScoreBias bias(std::size_t j) const { return biases.empty() ? ScoreBias{} : biases[j]; }
};

/// One query head of one batch: its keys and values read once into dense float64 rows.
class Head {
 public:
  /// Keeps references to both; they outlive it.
  Head(const Call& call, const Inputs& inputs, std::int64_t b, std::int64_t h);

  /// Fills `row`, reusing its storage. Any row may be asked for, in any order.
  void attend(std::int64_t i, Row& row) const;

  const double* value_row(std::int64_t j) const { return values_.data() + j * call_.value_dim; }
  /// As it is multiplied: normalised and rotated where the call says so.
  const double* key_row(std::int64_t j) const { return keys_.data() + j * call_.key_dim; }
  /// Empty for a key that is multiplied as it is stored.
  const PreparationCost& key_cost(std::int64_t j) const {
    return key_costs_.empty() ? kNoCost : key_costs_[static_cast<std::size_t>(j)];
  }
  double key_abs_sum(std::int64_t j) const { return key_abs_sums_[static_cast<std::size_t>(j)]; }
  /// Likewise. `cost` gets what that costs, and `scales` the scales of its codes.
  std::vector<double> query_row(std::int64_t i, PreparationCost* cost = nullptr, ScaleRange* scales = nullptr) const;
  const ScaleRange& value_scales() const { return value_scales_; }
  std::int64_t batch() const { return b_; }
  std::int64_t head() const { return h_; }
  const Call& call() const { return call_; }
  const Inputs& inputs() const { return inputs_; }

 private:
  ScoreBias bias(std::int64_t i, std::int64_t j) const;
  void dropout_factors(std::int64_t i, Row& row) const;
  void preparations(const std::vector<double>& q, Row& row) const;

  static const inline PreparationCost kNoCost;

  const Call& call_;
  const Inputs& inputs_;
  std::int64_t b_, h_;
  ScaleRange key_scales_, value_scales_;
  std::vector<double> keys_, values_;  ///< Lk x Dqk and Lk x Dv
  std::vector<double> key_abs_sums_;   ///< sum_t |k_jt|
  std::vector<PreparationCost> key_costs_;
};

/// Dense result of a whole call, for small cases: traces, unit tests, walkthroughs.
struct Attention {
  std::vector<Row> rows;  ///< in the order b, h, i
};
Attention attention(const Call& call, const Inputs& inputs);

}  // namespace attest
