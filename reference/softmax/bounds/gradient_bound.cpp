#include "reference/softmax/bounds/gradient_bound.h"

#include <algorithm>
#include <cmath>

#include "reference/softmax/bounds/error_bound.h"
#include "reference/softmax/bounds/row_scores.h"

namespace attest {
namespace {

/// The bounds themselves are evaluated in float64, over many keys.
constexpr double kGradientEvaluation = 1 + 0x1p-30;

/// How often dropout's factor and its product with a number are rounded.
constexpr double kDropoutRoundings = 3;

/// Whether a number is NaN because the data are, and not because infinities met.
struct Special {
  bool scores = false;    ///< a visible score or lse is not finite
  bool products = false;  ///< dP of a visible key, do or o is not finite
  bool infinite = false;  ///< and an infinity is among them, or a key that dropout leaves out: nothing can be said
};

Special special_of(const Row& row, const RowLoss& loss, const RowGradient& g) {
  Special special;
  const auto look = [&](double x, bool& kind) {
    if (std::isfinite(x)) return;
    kind = true;
    special.infinite = special.infinite || std::isinf(x);
  };
  for (std::size_t j = 0; j < row.seen.size(); ++j) {
    if (!row.seen[j]) continue;
    look(row.biased[j], special.scores);
    look(g.products[j], special.products);
    const bool dropped = !row.factors.empty() && row.factors[j] == 0;
    if (dropped && !std::isfinite(g.products[j])) special.infinite = true;
  }
  for (const double x : loss.out) look(x, special.products);
  look(loss.lse, special.products);
  for (const double x : row.output) look(x, special.products);
  look(row.lse, special.scores);
  return special;
}

/// Absolute errors of the weights, stored where they are kept.
double weight_error(const Row& row, const ForwardErrors& forward, double ratio, std::size_t j, double score_error,
                    const BoundConstants& c) {
  if (c.arithmetic.kept_weights) return forward.weights[j] + c.eta;
  return weight_from_lse(row, ratio, j, score_error, forward.lse, c);
}

/// Of the weight of the sink, exp(sink - lse) or its share of the sum.
double sink_weight_error(const Row& row, double weight, double ratio, double lse_error, const BoundConstants& c) {
  const double below = row.visible_count == 0 ? 0 : row.lse - row.sink;
  const double in_base = c.arithmetic.base2 || c.arithmetic.fused_log2e ? 3 : 1;
  const double frame = in_base > 1 ? 4 * c.u * (std::fabs(row.lse) + std::fabs(row.sink) + lse_error) : 0;
  const double exponent = lse_error + in_base * c.u * (below + lse_error) + frame + c.e_exp * (1 + c.blocks) +
                          (c.division_roundings + 2) * c.u;
  return ratio * weight * std::expm1(exponent) * (1 + 8 * c.u) + c.eta;
}

/// 1 - tanh(t/cap)^2 times a number of this size and error: the error of the product.
double softcap_error(const Row& row, std::size_t j, double capped_error, double size, double error,
                     const BoundConstants& c) {
  const double cap = *c.softcap, tanh = std::fabs(row.capped[j] / cap);
  const double of_tanh = capped_error / cap + 3 * c.u * (tanh + capped_error / cap) + c.eta;
  const double of_slope = 2 * tanh * of_tanh + of_tanh * of_tanh + 2.01 * c.u;
  const double slope = 1 - tanh * tanh;
  const double total = error * slope + (size + error) * of_slope;
  return total + c.u * (size * slope + total) + c.eta;
}

}  // namespace

void bound_row_gradient(const Head& head, const Row& row, std::int64_t i, const RowLoss& loss, const RowGradient& g,
                        const ForwardErrors& forward, double ratio, const BoundConstants& c,
                        RowGradientErrors& errors) {
  const std::size_t keys = row.seen.size(), columns = loss.out.size();
  for (auto* list : {&errors.weights, &errors.scores, &errors.raw}) list->assign(keys, 0.0);
  errors.sink = 0;
  const Arithmetic& a = c.arithmetic;
  Special special = special_of(row, loss, g);
  // What was saved is not what the data give.
  if (!a.kept_weights && !std::isfinite(forward.lse)) special.infinite = true;
  if (!a.delta_from_weights) {
    for (const double off : forward.output) special.infinite = special.infinite || !std::isfinite(off);
  }
  const std::vector<ScoreErrors> scores = score_errors(head, row, i, c);
  const auto n = static_cast<double>(row.visible_count), dv = static_cast<double>(columns);
  const double dropout = row.factors.empty() ? 0 : kDropoutRoundings;
  const bool stores_gradients = narrower(a.stored_score_gradients, a.accumulator);
  const Storing storing_gradients(a, stores_gradients ? a.stored_score_gradients : a.accumulator);

  double sum_of_loss = 0;
  for (const double x : loss.out) sum_of_loss += std::fabs(x);
  // dP: its error and |r| * sum |do * v|.
  std::vector<double> product_errors(keys, 0.0), weight_errors(keys, 0.0);
  bool overflows = false;
  double delta_error = 0;
  for (std::size_t j = 0; j < keys; ++j) {
    if (!row.seen[j]) continue;
    const double factor = row.factors.empty() ? 1 : row.factors[j];
    const double* v = head.value_row(static_cast<std::int64_t>(j));
    double magnitude = 0, sum_of_value = 0;
    for (std::size_t col = 0; col < columns; ++col) {
      magnitude += std::fabs(loss.out[col] * v[col]);
      sum_of_value += std::fabs(v[col]);
    }
    if (magnitude * std::max(1.0, factor) > c.half_range) overflows = true;
    product_errors[j] = factor * (c.gamma(dv + dropout) * magnitude + c.eta * (1 + dv + sum_of_loss + sum_of_value));
    weight_errors[j] = weight_error(row, forward, ratio, j, scores[j].biased, c);
    const double heaviest = ratio * row.weights[j] + weight_errors[j], size = std::fabs(g.products[j]);
    delta_error += weight_errors[j] * size + heaviest * product_errors[j] +
                   c.gamma(n + c.blocks + 1) * heaviest * (size + product_errors[j]) + c.eta;
  }
  if (!a.delta_from_weights) {
    delta_error = 0;
    double sum_of_output = 0;
    for (std::size_t col = 0; col < columns; ++col) {
      const double out = std::fabs(row.output[col]), off = forward.output[col], size = std::fabs(loss.out[col]);
      delta_error += size * (off + c.gamma(dv) * (out + off));
      sum_of_output += out + off;
      if (size * (out + off) * dv > c.half_range) overflows = true;
    }
    delta_error += c.eta * (1 + dv + sum_of_loss + sum_of_output);
  }
  const double delta = std::fabs(g.mean);

  const auto undefined = [&](double value) { return std::isnan(value) && !special.infinite ? 0 : kInfinity; };
  const double u_weights = a.kept_weights ? 0 : c.u_weights, eta_weights = a.kept_weights ? 0 : c.eta_weights;
  for (std::size_t j = 0; j < keys; ++j) {
    if (!row.seen[j]) continue;
    const double factor = row.factors.empty() ? 1 : row.factors[j];
    const double p = ratio * row.weights[j], off = weight_errors[j];
    if (special.scores) {
      errors.weights[j] = undefined(row.weights[j]);
    } else {
      errors.weights[j] = factor * (off + u_weights * (p + off) + eta_weights);
    }
    if (special.scores || special.products || overflows) {
      errors.scores[j] = overflows ? kInfinity : undefined(g.scores[j]);
      errors.raw[j] = overflows ? kInfinity : undefined(g.raw[j]);
      continue;
    }
    // dP - D + dlse, its terms added in any order and each perhaps multiplied by P first.
    const double terms = std::fabs(g.products[j]) + delta + std::fabs(loss.lse);
    const double size = std::fabs(g.products[j] - g.mean + loss.lse);
    double of_difference = product_errors[j] + delta_error;
    of_difference += c.gamma(2) * (terms + of_difference);
    const double of_product = c.u * (p + off) * (terms + of_difference) + c.eta;
    const double of_scores = off * size + (p + off) * of_difference + of_product;
    double of_raw = of_scores;
    if (c.softcap) of_raw = softcap_error(row, j, scores[j].capped, std::fabs(g.scores[j]), of_scores, c);
    errors.scores[j] = kGradientEvaluation * storing_gradients.bound(std::fabs(g.scores[j]), of_scores);
    errors.raw[j] = kGradientEvaluation * storing_gradients.bound(std::fabs(g.raw[j]), of_raw);
  }
  // 0 times infinity: nothing can be said.
  for (auto* list : {&errors.weights, &errors.scores, &errors.raw}) {
    for (double& error : *list) error = std::isnan(error) ? kInfinity : error;
  }
  if (row.sink == -kInfinity) return;
  if (special.scores || special.products || overflows) {
    errors.sink = overflows ? kInfinity : undefined(g.sink);
    return;
  }
  const double weight = row.visible_count == 0 ? 1 : std::exp(row.sink - row.lse);
  const double of_weight = sink_weight_error(row, weight, ratio, forward.lse, c);
  const double size = std::fabs(loss.lse - g.mean), terms = std::fabs(loss.lse) + delta;
  const double of_delta = row.visible_count == 0 ? 0 : delta_error;
  errors.sink = kGradientEvaluation *
                (of_weight * size + (ratio * weight + of_weight) * (of_delta + 2 * c.u * (terms + of_delta)) + c.eta);
  if (std::isnan(errors.sink)) errors.sink = kInfinity;
}

void GradientSum::add(double x, double x_error, double y) {
  const double size = std::fabs(y), with_error = std::fabs(x) + x_error;
  // 0 times what nothing can be said of is 0 for whoever skips it, and NaN for others.
  errors += x_error == kInfinity ? kInfinity : x_error * size;
  magnitudes += with_error == kInfinity ? kInfinity : with_error * size;
  operands += with_error + size;
  ++terms;
}

double bound_gradient_sum(const GradientSum& sum, double value, double scale, double roundings, const BoundConstants& c,
                          const Storing& storing) {
  if (sum.terms == 0) return 0;
  if (sum.errors == kInfinity) return kInfinity;
  if (std::isnan(value)) return 0;
  if (std::isinf(value)) return kInfinity;
  const double size = std::fabs(scale), larger = std::max(1.0, size);
  if (!(larger * sum.magnitudes <= c.half_range)) return kInfinity;
  const Arithmetic& a = c.arithmetic;
  const auto terms = static_cast<double>(sum.terms + sum.parts);
  double error = size * (sum.errors + BoundConstants::both(c.gamma(terms + roundings), c.of_scale) * sum.magnitudes);
  if (sum.parts > 0 && narrower(a.stored_head_gradients, a.accumulator)) {
    const double u = unit_roundoff(a.stored_head_gradients);
    error += u * (size * sum.kept_apart + error) +
             static_cast<double>(sum.parts) * underflow_unit(a.stored_head_gradients, a.flush_to_zero);
    if (!(size * sum.kept_apart + error <= largest_held(a.stored_head_gradients))) return kInfinity;
  }
  error += larger * c.eta * (1 + terms + sum.operands);
  const double bound = kGradientEvaluation * storing.bound(std::fabs(value), error);
  return bound >= 0 ? bound : kInfinity;
}

}  // namespace attest
