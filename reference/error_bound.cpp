#include "reference/error_bound.h"

#include <algorithm>
#include <cfloat>
#include <cmath>

namespace attest {
namespace {

/// Everything that depends on the declared arithmetic and the sizes, but not on the data of a row.
struct Constants {
  double u, e_exp, e_log, u_weights, u_store, eta, eta_weights, eta_store, half_range, largest;
  double blocks, scale_roundings, division_roundings;

  double gamma(double k) const { return k * u / (1 - k * u); }
};

constexpr double kSmallestF32 = 0x1p-149, kSmallestNormalF32 = 0x1p-126;
constexpr double kSmallestF64 = 0x1p-1074, kSmallestNormalF64 = 0x1p-1022;

double smallest(DType type, bool flush_to_zero) {
  if (type == DType::f64) return flush_to_zero ? kSmallestNormalF64 : kSmallestF64;
  if (type == DType::f32) return flush_to_zero ? kSmallestNormalF32 : kSmallestF32;
  return type == DType::f16 ? 0x1p-25 : 0x1p-134;
}

bool narrower(DType a, DType b) { return unit_roundoff(a) > unit_roundoff(b); }

Constants constants_of(const Problem& p, const Arithmetic& a, DType stored) {
  Constants c{};
  c.u = unit_roundoff(a.accumulator);
  c.e_exp = 2 * c.u * a.exp_ulps;
  c.e_log = 2 * c.u * a.log_ulps;
  const bool weights_stored = narrower(a.stored_weights, a.accumulator);
  c.u_weights = weights_stored ? unit_roundoff(a.stored_weights) : 0;
  c.eta = smallest(a.accumulator, a.flush_to_zero);
  c.eta_weights = weights_stored ? smallest(a.stored_weights, a.flush_to_zero) : 0;
  const bool output_stored = narrower(stored, a.accumulator);
  c.u_store = output_stored ? unit_roundoff(stored) : 0;
  c.eta_store = smallest(stored, a.flush_to_zero);
  c.half_range = a.accumulator == DType::f64 ? 0x1p1023 : 0x1p127;
  c.largest = a.accumulator == DType::f64 ? DBL_MAX : static_cast<double>(FLT_MAX) * (1 + 0x1p-25);
  c.blocks = a.key_block > 0 ? std::ceil(static_cast<double>(p.key_length) / static_cast<double>(a.key_block)) : 0;
  switch (a.scale) {
    case ScalePlacement::score: c.scale_roundings = 2; break;
    case ScalePlacement::folded_log2e: c.scale_roundings = 4; break;
    case ScalePlacement::split_root: c.scale_roundings = 5; break;
  }
  switch (a.division) {
    case Division::ieee: c.division_roundings = 1; break;
    case Division::reciprocal: c.division_roundings = 2; break;
    case Division::opencl_division: c.division_roundings = 5; break;
    case Division::opencl_reciprocal: c.division_roundings = 6; break;
  }
  return c;
}

/// Relative errors of the computed weights of one row, as far as they differ between keys.
struct WeightErrors {
  std::vector<double> of_weight;  ///< pt_j, absolute, 0 where hidden
  double sum = 0;                 ///< W
  double largest_exponent = 0;    ///< max t_j
  double reference_point = 0;     ///< E*: by how much the computed maximum may be off
  double largest_score = 0;       ///< max E_j
};

/// E_j, the absolute error of a visible biased score.
double score_error(const Head& head, const Row& row, std::size_t j, const Arithmetic& a, const Constants& c) {
  const Problem& p = head.problem();
  const auto d = static_cast<double>(p.key_dim);
  // A product or a scaled operand that underflows loses up to eta; max(1, |scale|) covers scaling before and after.
  const double lost = c.eta * (1 + d + row.query_abs_sum + head.key_abs_sum(static_cast<std::int64_t>(j)));
  double error = c.gamma(d + c.scale_roundings) * row.abs_products[j] + std::max(1.0, std::fabs(p.scale_value())) * lost;
  if (head.inputs().mask && head.inputs().mask->additive) {
    if (a.base2) error += c.gamma(2) * std::fabs(row.biased[j] - row.raw[j]);
    error += c.u * (std::fabs(row.biased[j]) + error);
  }
  return error;
}

WeightErrors weight_errors(const Head& head, const Row& row, const Arithmetic& a, const Constants& c) {
  WeightErrors errors;
  std::vector<double>& t = errors.of_weight;
  t.assign(row.seen.size(), 0.0);
  for (std::size_t j = 0; j < t.size(); ++j) {
    if (!row.seen[j]) continue;
    t[j] = score_error(head, row, j, a, c);
    errors.largest_score = std::max(errors.largest_score, t[j]);
    errors.reference_point = std::max(errors.reference_point, t[j] - (row.max - row.biased[j]));
  }
  const double per_key = c.e_exp + c.blocks * (c.e_exp + c.u) + 2 * c.u * a.lazy_threshold;
  for (std::size_t j = 0; j < t.size(); ++j) {
    if (!row.seen[j]) continue;
    const double below_max = row.max - row.biased[j];
    if (below_max == kInfinity) {
      t[j] = 0;  // further below than there are numbers: the weight is 0 whatever the rounding
      continue;
    }
    // Summed in this order: below_max may be the largest double there is.
    const double exponent = t[j] + c.u * below_max + c.u * (t[j] + errors.reference_point) + per_key;
    errors.largest_exponent = std::max(errors.largest_exponent, exponent);
    // The second form lets huge finite masks vanish instead of overflowing.
    const double log_weight = row.biased[j] - row.lse;
    t[j] = exponent < 1 ? std::exp(log_weight) * std::expm1(exponent)
                        : std::exp(log_weight + exponent) - std::exp(log_weight);
    errors.sum += t[j];
  }
  return errors;
}

/// Sums over the visible keys, one entry per output column.
struct ColumnSums {
  std::vector<double> centred;    ///< sum pt_j * |v_jc - o_c|
  std::vector<double> spread;     ///< max |v_jc - o_c|
  std::vector<double> weighted;   ///< sum (p_j + pt_j) * |v_jc|
  std::vector<double> largest;    ///< max |v_jc|
  std::vector<double> absolute;   ///< sum |v_jc|

  ColumnSums(const Head& head, const Row& row, const WeightErrors& errors) {
    const std::size_t columns = row.output.size();
    for (auto* list : {&centred, &spread, &weighted, &largest, &absolute}) list->assign(columns, 0.0);
    for (std::size_t j = 0; j < row.seen.size(); ++j) {
      if (!row.seen[j]) continue;
      const double* v = head.value_row(static_cast<std::int64_t>(j));
      const double off = errors.of_weight[j], most = row.weights[j] + off;
      for (std::size_t c = 0; c < columns; ++c) {
        const double deviation = std::fabs(v[c] - row.output[c]), magnitude = std::fabs(v[c]);
        centred[c] += off * deviation;
        spread[c] = std::max(spread[c], deviation);
        weighted[c] += most * magnitude;
        largest[c] = std::max(largest[c], magnitude);
        absolute[c] += magnitude;
      }
    }
  }
};

}  // namespace

Arithmetic reference_arithmetic() {
  Arithmetic a;
  a.accumulator = a.stored_weights = DType::f64;
  a.exp_ulps = a.log_ulps = 1;
  a.normalised_before_storage = true;
  return a;
}

void bound_row(const Head& head, const Row& row, const Arithmetic& a, DType stored, RowBound& bound,
               std::int64_t terms_column) {
  bound.output.assign(row.output.size(), 0.0);
  bound.lse = 0;
  bound.terms = {};
  if (row.visible_count == 0) return;

  const Constants c = constants_of(head.problem(), a, stored);
  // A maximum that may round to an infinity proves nothing; NaN there is visible poison and stays one.
  const double raw_error =
      c.gamma(static_cast<double>(head.problem().key_dim) + c.scale_roundings) * row.largest_product;
  if (!(row.largest_product <= c.half_range || std::isnan(row.max)) || std::fabs(row.max) + raw_error > c.largest) {
    bound.output.assign(row.output.size(), kInfinity);
    bound.lse = kInfinity;
    return;
  }
  const WeightErrors weights = weight_errors(head, row, a, c);
  const ColumnSums sums(head, row, weights);
  const auto n = static_cast<double>(row.visible_count);
  const double d = static_cast<double>(head.problem().key_dim);
  const double lambda = a.normalised_before_storage ? 1 : row.sum;
  const double in_product = a.normalised_before_storage ? c.division_roundings : 0;
  const double after_product = a.normalised_before_storage ? 0 : c.division_roundings;
  const bool convex_only = !(weights.sum < 1);

  for (std::size_t column = 0; column < row.output.size(); ++column) {
    if (std::isnan(row.output[column])) continue;  // visible poison: the class decides, no bound does
    const double magnitude = std::fabs(row.output[column]);
    // Outputs are convex combinations of the values: however wrong the weights, o stays among them.
    const double centred = convex_only ? sums.spread[column]
                                       : std::min(sums.centred[column] / (1 - weights.sum), sums.spread[column]);
    const double weighted = convex_only ? sums.largest[column]
                                        : std::min(sums.weighted[column] / (1 - weights.sum), sums.largest[column]);
    const double products = ((1 + c.gamma(n + c.blocks + in_product)) * (1 + c.u_weights) - 1) * weighted;
    const double division = (c.gamma(n + c.blocks) + after_product * c.u) * magnitude;
    double underflow = c.eta * sums.absolute[column] / row.sum + c.eta_weights * sums.absolute[column] / lambda +
                       c.eta * (n + c.blocks) / lambda;
    if (a.flush_to_zero) underflow += c.eta;  // flushed values: eta * sum p_j
    const double before = (1 + 2 * c.gamma(n + c.blocks + d + 4)) * (centred + products + division + underflow);
    const double storage = c.u_store * (magnitude + before) + c.eta_store;
    const bool may_overflow = !(n * sums.largest[column] <= c.half_range);
    bound.output[column] = may_overflow ? kInfinity : before + storage;
    if (static_cast<std::int64_t>(column) == terms_column) {
      bound.terms = {weights.largest_score, weights.sum, centred, products, division, underflow, storage};
    }
  }

  const double from_sum = convex_only ? kInfinity : -std::log1p(-weights.sum);
  const double shift = std::min(from_sum, weights.largest_exponent) - std::log1p(-c.gamma(n + c.blocks));
  bound.lse = (shift + c.e_log * (std::fabs(std::log(row.sum)) + weights.reference_point + shift) +
               c.u * (std::fabs(row.lse) + shift)) * (1 + 4 * c.u);
  if (a.base2) bound.lse += 2 * c.u * (std::fabs(row.max) + std::fabs(std::log(row.sum)));
  bound.lse += c.u_store * (std::fabs(row.lse) + bound.lse);
}

}  // namespace attest
