// How an implementation says it rounds. The error bound is derived from these facts and from nothing else,
// so each must be true, and no wider than true: harness/probe/ holds them against what answers show.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/base/names.h"
#include "reference/base/types.h"
#include "reference/call/call.h"

namespace attest {

enum class Division : std::uint8_t {
  ieee,               ///< correctly rounded
  reciprocal,         ///< IEEE reciprocal, then a product
  opencl_division,    ///< OpenCL's 2.5 ulps
  opencl_reciprocal,  ///< OpenCL's reciprocal, then a product
};
template <>
inline constexpr auto kNames<Division> = name_table("ieee", "reciprocal", "opencl_division", "opencl_reciprocal");

enum class ScalePlacement : std::uint8_t {
  score,         ///< the rounded scale multiplies q, k or the score, once
  folded_log2e,  ///< scale*log2(e) is one factor (base 2 only)
  split_root,    ///< sqrt(scale) multiplies both q and k
};
template <>
inline constexpr auto kNames<ScalePlacement> = name_table("score", "folded_log2e", "split_root");

/// The format to which an operand of a product is rounded, to nearest, on its way into it.
enum class OperandFormat : std::uint8_t {
  exact,  ///< the product takes it as it is
  tf32,   ///< 10 bits of fraction and float's exponents
  bf16,
  f16,
  e4m3,  ///< up to 448, as OCP has it
  e5m2,
  int8,    ///< integers up to 127
  u8,      ///< and up to 255; of weights alone
  int4,    ///< and up to 7
  e2m1,    ///< up to 6
  bf16x3,  ///< a sum of two numbers of bf16; of their four products that of the two small ones is left out
};
template <>
inline constexpr auto kNames<OperandFormat> = name_table("exact", "tf32", "bf16", "f16", "e4m3", "e5m2", "int8", "u8",
                                                         "int4", "e2m1", "bf16x3");

/// How an operand becomes a number of its format, where that isn't to nearest and as it is: x / step is rounded, and
/// the step multiplied in behind the product.
struct OperandRounding {
  /// In units of the tensor, without a factor of the scale. 0: the largest magnitude among those that share the step,
  /// hidden tokens included, over the format's largest number.
  double step = 1;
  std::int64_t rows = 0;      ///< tokens that share a step of 0, of weights keys; counted from the first. 0: all
  std::int64_t columns = 0;   ///< features of them that do, likewise; 1: a step for each column
  double slack = 0x1p-14;     ///< relative: by how much a step and what is rounded in it may be larger
  bool power_of_two = false;  ///< a step of 0 is a power of two, as OCP's of 8 bits: what is too large saturates
  bool directed = false;      ///< cut towards zero, and not to nearest
  bool mean_removed = false;  ///< of k: it is rounded less its mean over all keys of the head
  OperandFormat mean_format = OperandFormat::exact;  ///< in which that mean is kept

  bool operator==(const OperandRounding&) const = default;
};

/// The format in which a sum is kept while its terms are added.
enum class SumFormat : std::uint8_t {
  accumulator,
  f32,
  bf16,
  f16,
  exact,  ///< integers that never leave their range: nothing is rounded
};
template <>
inline constexpr auto kNames<SumFormat> = name_table("accumulator", "f32", "bf16", "f16", "exact");

/// How products are added, where that isn't one by one in the accumulator's type.
struct Sum {
  SumFormat format = SumFormat::accumulator;
  std::int64_t promote = 0;  ///< terms after which the sum goes into the accumulator, and starts anew; 0: never
  int width = 1;             ///< terms that are aligned to the largest of them and added at once, with what was there
  int bits = 0;              ///< of the fraction, that are kept of aligned terms and of their sum; 0: the format's
  bool directed = false;     ///< roundings cut towards zero

  bool operator==(const Sum&) const = default;
};

/// Magnitudes of a decay's logarithms, summed for one feature over a chunk of tokens, up to which a kernel may divide
/// keys by the decay: Arithmetic::state_chunk.
inline constexpr double kChunkNats = 32;

/// How results are rounded.
struct Rounding {
  DType accumulator = DType::f32;     ///< of every sum; f32 or f64
  DType stored_weights = DType::f32;  ///< type in which exp(s - m) enters P*V; the accumulator's when wider
  double exp_ulps = 2;                ///< of exp or exp2, over the range the softmax uses
  double log_ulps = 2;                ///< of log or log2, for lse
  double tanh_ulps = 2;               ///< of tanh, for softcap
  bool base2 = false;                 ///< scores are kept in units of log 2 and exp2 is used
  ScalePlacement scale = ScalePlacement::score;
  Division division = Division::ieee;
  /// Keys per step of an online softmax, in whatever order the steps walk over the keys; 0: one pass over whole rows.
  /// States of steps (maximum, sum, output) that are merged without being divided count as steps, in any tree.
  std::int64_t key_block = 0;
  double lazy_threshold = 0;               ///< nats by which the running maximum may lag; 0: never
  bool normalised_before_storage = false;  ///< P is divided by its sum before P*V
  DType stored_scores = DType::f32;  ///< type in which scores are kept between steps; the accumulator's when wider
  int score_stores = 0;              ///< how often a score is rounded to it: before or after scale, cap and bias
  bool sum_of_stored = false;        ///< the row sum adds the weights as stored; not with weights divided before
  bool flush_to_zero = false;        ///< subnormals of the accumulator's type may become 0, of 16-bit types they stay
  /// Linear attention without the delta rule: tokens, counted from the first, that enter the state together as
  /// reference/linear/linear_chunk.h writes it; 0: one by one. A chunk that decays by more than kChunkNats goes one by
  /// one.
  std::int64_t state_chunk = 0;
  /// Softmax attention whose keys are cut, as evenly as they go, into so many runs or fewer: the result over each is
  /// divided, and they are merged by their logsumexp in the accumulator's type, by exp and log as above; 0: not cut.
  std::int64_t parts = 0;
  DType stored_parts = DType::f32;  ///< type in which a part's result waits to be merged; the accumulator's when wider
  /// Scores in base e enter exp2 through one fused multiply-add: exp2(fma(s, log2(e), -m*log2(e))). Not with base2.
  bool fused_log2e = false;
  bool no_maximum = false;        ///< weights are exp(s): nothing is subtracted. Not with key_block or parts
  bool weights_from_lse = false;  ///< weights as an output are exp(s - lse), whatever P is in P*V
  // Of gradients, symbols as in reference/softmax/gradient.h. P is exp(s - lse), stored for dv in stored_weights, and D
  // is the sum of do*o, unless these say otherwise.
  bool kept_weights = false;        ///< P is that of a forward pass, kept or computed once more with its own sum
  bool delta_from_weights = false;  ///< D is the sum of P*dP
  DType stored_score_gradients = DType::f64;  ///< type in which dS enters dq and dk; the accumulator's when wider
  DType stored_head_gradients = DType::f64;   ///< type in which dk and dv of a query head wait to be summed; likewise
  bool varying_order =
      false;  ///< sums go in an order that changes from run to run, as atomics do: no bits are promised

  // Softmax attention without gradients: what operands of Q*K and P*V are rounded to, as by casts before products on
  // matrix units. q and k may be rounded before or after a factor of the scale.
  OperandFormat query_operand = OperandFormat::exact;
  OperandFormat key_operand = OperandFormat::exact;
  OperandFormat value_operand = OperandFormat::exact;
  OperandFormat weight_operand = OperandFormat::exact;  ///< where stored_weights doesn't already round them

  // Likewise: how the products of Q*K, those of P*V and the weights of a row are added.
  Sum score_sum{}, value_sum{}, weight_sum{};
  int score_roundings = 0;   ///< products behind Q*K by factors that aren't 1, as scales of its operands are
  int output_roundings = 0;  ///< likewise behind P*V
  double weight_factor = 1;  ///< by which weights are multiplied before they become weight_operand
  // Likewise: exp where it is approximated. It takes an argument in a narrow format, its result may be off by a number
  // besides exp_ulps, and another one may rescale what was summed under an older maximum.
  double exp_absolute = 0;
  OperandFormat exp_argument = OperandFormat::exact;
  double rescale_ulps = -1;  ///< below 0: as exp, with exp_absolute
  // Likewise: steps and directions of the four operands.
  OperandRounding query_rounding{}, key_rounding{}, value_rounding{}, weight_rounding{};

  bool operator==(const Rounding&) const = default;
};

/// One result that is rounded otherwise than the others.
struct ResultRounding {
  TensorId result;
  Rounding rounding;
  bool operator==(const ResultRounding&) const = default;
};

struct Arithmetic : Rounding {
  std::vector<ResultRounding> of_results{};

  /// What holds for one result.
  Arithmetic of(TensorId result) const {
    for (const ResultRounding& one : of_results) {
      if (one.result == result) return {one.rounding, {}};
    }
    return {*this, {}};
  }
  bool operator==(const Arithmetic&) const = default;
};

}  // namespace attest
