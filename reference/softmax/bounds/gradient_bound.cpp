#include "reference/softmax/bounds/gradient_bound.h"

#include <algorithm>
#include <cmath>

#include "reference/softmax/bounds/error_bound.h"
#include "reference/softmax/bounds/partial_sums.h"
#include "reference/softmax/bounds/row_scores.h"
#include "reference/softmax/bounds/stage_bound.h"

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

/// The errors of one row, step by step.
class RowGradientBound {
 public:
  RowGradientBound(const Head& head, const Row& row, std::int64_t i, const RowLoss& loss, const RowGradient& gradient,
                   const ForwardErrors& forward, double ratio, const BoundConstants& c)
      : head_(head),
        row_(row),
        loss_(loss),
        g_(gradient),
        forward_(forward),
        ratio_(ratio),
        c_(c),
        special_(special_of(row, loss, gradient)),
        scores_(score_errors(head, row, i, c)),
        product_errors_(row.seen.size()),
        weight_errors_(row.seen.size()) {
    // What was saved is not what the data give.
    if (!c.arithmetic.kept_weights && !std::isfinite(forward.lse)) special_.infinite = true;
    if (!c.arithmetic.delta_from_weights) {
      for (const double off : forward.output) special_.infinite = special_.infinite || !std::isfinite(off);
    }
    if (!c.arithmetic.kept_weights) {
      const NonFiniteScores non_finite = non_finite_scores(head, row, i, c.half_range, c.eta);
      scores_overflow_ = row.visible_count > 0 && scores_may_overflow(row, scores_, non_finite, c);
      overflows_ = scores_overflow_;
    }
    for (const double x : loss.out) sum_of_loss_ += std::fabs(x);
    for (std::size_t j = 0; j < row.seen.size(); ++j) {
      if (row.seen[j]) find_operands(j);
    }
    delta_error_ = c.arithmetic.delta_from_weights ? of_weights_ : delta_from_output();
    const bool stores = narrower(c.arithmetic.stored_score_gradients, c.arithmetic.accumulator);
    storing_ = {c.arithmetic, stores ? c.arithmetic.stored_score_gradients : c.arithmetic.accumulator};
  }

  void bound_key(std::size_t j, RowGradientErrors& errors, TermsOf wanted) const {
    const bool stored = !c_.arithmetic.kept_weights;
    const double p = ratio_ * row_.weights[j], off = weight_errors_[j];
    // Of a saved lse that is too small exp overflows, whose product with 0 is NaN.
    const bool weight_overflows = !(p + off <= c_.half_range);
    if (scores_overflow_ || (weight_overflows && !special_.scores)) {
      errors.weights[j] = kInfinity;
    } else if (special_.scores) {
      // Whether dropout multiplies NaN by 0 or leaves it out is nobody's promise.
      errors.weights[j] = factor(j) == 0 ? kInfinity : undefined(row_.weights[j]);
    } else {
      errors.weights[j] = factor(j) * (off + (stored ? c_.u_weights * (p + off) + c_.eta_weights : 0));
    }
    if (special_.scores || special_.products || overflows_) {
      errors.scores[j] = overflows_ ? kInfinity : undefined(g_.scores[j]);
      errors.raw[j] = overflows_ ? kInfinity : undefined(g_.raw[j]);
      return;
    }
    if (weight_overflows) {
      errors.scores[j] = errors.raw[j] = kInfinity;
      return;
    }
    // dP - D + dlse, its terms added in any order and each perhaps multiplied by P first.
    const double of_terms = std::fabs(g_.products[j]) + std::fabs(g_.mean) + std::fabs(loss_.lse);
    const double operands = product_errors_[j] + delta_error_, adding = c_.gamma(2) * (of_terms + operands);
    const double of_product = c_.u * (p + off) * (of_terms + operands + adding) + c_.eta;
    ScoreGradientTerms terms;
    terms.weights = off * std::fabs(g_.products[j] - g_.mean + loss_.lse);
    terms.products = (p + off) * product_errors_[j];
    terms.delta = (p + off) * delta_error_;
    terms.difference = (p + off) * adding + of_product;
    const double of_scores = terms.sum();
    double of_raw = of_scores;
    if (c_.softcap) of_raw = softcap_error(row_, j, scores_[j].capped, std::fabs(g_.scores[j]), of_scores, c_);
    errors.scores[j] = kGradientEvaluation * storing_.bound(std::fabs(g_.scores[j]), of_scores);
    errors.raw[j] = kGradientEvaluation * storing_.bound(std::fabs(g_.raw[j]), of_raw);
    if (wanted == TermsOf::nothing) return;
    ScoreGradientTerms& shown = errors.terms[j];
    if (wanted == TermsOf::scores) {
      shown = terms;
      shown.storage = errors.scores[j] - of_scores;
      return;
    }
    const double slope = c_.softcap ? 1 - square(std::tanh(row_.raw[j] / *c_.softcap)) : 1;
    shown.add(terms, slope);
    shown.softcap = of_raw - slope * of_scores;
    shown.storage = errors.raw[j] - of_raw;
  }

  double sink() const {
    if (special_.scores || special_.products || overflows_) return overflows_ ? kInfinity : undefined(g_.sink);
    const double weight = row_.visible_count == 0 ? 1 : std::exp(row_.sink - row_.lse);
    const double of_weight = sink_weight_error(row_, weight, ratio_, forward_.lse, c_);
    if (!(ratio_ * weight + of_weight <= c_.half_range)) return kInfinity;
    const double size = std::fabs(loss_.lse - g_.mean), of_terms = std::fabs(loss_.lse) + std::fabs(g_.mean);
    const double of_delta = row_.visible_count == 0 ? 0 : delta_error_;
    const double error =
        of_weight * size + (ratio_ * weight + of_weight) * (of_delta + 2 * c_.u * (of_terms + of_delta)) + c_.eta;
    return kGradientEvaluation * error;
  }

 private:
  double factor(std::size_t j) const { return row_.factors.empty() ? 1 : row_.factors[j]; }
  double undefined(double value) const { return std::isnan(value) && !special_.infinite ? 0 : kInfinity; }

  /// The errors of dP and of the weight of a visible key, and what they make of D where it is the sum of P*dP.
  void find_operands(std::size_t j) {
    const auto n = static_cast<double>(row_.visible_count), dv = static_cast<double>(loss_.out.size());
    const double* v = head_.value_row(static_cast<std::int64_t>(j));
    double magnitude = 0, sum_of_value = 0;
    for (std::size_t col = 0; col < loss_.out.size(); ++col) {
      magnitude += std::fabs(loss_.out[col] * v[col]);
      sum_of_value += std::fabs(v[col]);
    }
    if (magnitude * std::max(1.0, factor(j)) > c_.half_range) overflows_ = true;
    const double dropout = row_.factors.empty() ? 0 : kDropoutRoundings;
    const double off =
        factor(j) * (c_.gamma(dv + dropout) * magnitude + c_.eta * (1 + dv + sum_of_loss_ + sum_of_value));
    const double of_weight = weight_error(row_, forward_, ratio_, j, scores_[j].biased, c_);
    const double heaviest = ratio_ * row_.weights[j] + of_weight, size = std::fabs(g_.products[j]);
    if (c_.arithmetic.delta_from_weights && !(heaviest <= c_.half_range)) overflows_ = true;
    of_weights_ += of_weight * size + heaviest * off + c_.gamma(n + c_.blocks + 1) * heaviest * (size + off) + c_.eta;
    product_errors_[j] = off;
    weight_errors_[j] = of_weight;
  }

  /// D of do*o.
  double delta_from_output() {
    const auto dv = static_cast<double>(loss_.out.size());
    double error = 0, sum_of_output = 0;
    for (std::size_t col = 0; col < loss_.out.size(); ++col) {
      const double out = std::fabs(row_.output[col]), off = forward_.output[col], size = std::fabs(loss_.out[col]);
      error += size * (off + c_.gamma(dv) * (out + off));
      sum_of_output += out + off;
      if (size * (out + off) * dv > c_.half_range) overflows_ = true;
    }
    return error + c_.eta * (1 + dv + sum_of_loss_ + sum_of_output);
  }

  const Head& head_;
  const Row& row_;
  const RowLoss& loss_;
  const RowGradient& g_;
  const ForwardErrors& forward_;
  double ratio_;
  const BoundConstants& c_;
  Special special_;
  std::vector<ScoreErrors> scores_;
  std::vector<double> product_errors_, weight_errors_;
  double sum_of_loss_ = 0, of_weights_ = 0, delta_error_ = 0;
  bool scores_overflow_ = false;  ///< a score may be infinite, and its weight with it
  bool overflows_ = false;        ///< or another number
  Storing storing_;               ///< of dT
};

}  // namespace

void bound_row_gradient(const Head& head, const Row& row, std::int64_t i, const RowLoss& loss, const RowGradient& g,
                        const ForwardErrors& forward, double ratio, const BoundConstants& c, RowGradientErrors& errors,
                        TermsOf wanted) {
  for (auto* list : {&errors.weights, &errors.scores, &errors.raw}) list->assign(row.seen.size(), 0.0);
  errors.terms.assign(wanted == TermsOf::nothing ? 0 : row.seen.size(), {});
  const RowGradientBound bound(head, row, i, loss, g, forward, ratio, c);
  for (std::size_t j = 0; j < row.seen.size(); ++j) {
    if (row.seen[j]) bound.bound_key(j, errors, wanted);
  }
  errors.sink = row.sink == -kInfinity ? 0 : bound.sink();
  // 0 times infinity: nothing can be said.
  const auto known = [](double error) { return std::isnan(error) ? kInfinity : error; };
  for (auto* list : {&errors.weights, &errors.scores, &errors.raw}) std::ranges::transform(*list, list->begin(), known);
  errors.sink = known(errors.sink);
  if (!states_products(c.arithmetic)) return;
  // How operands enter the five products of a backward pass, and how those are added, isn't stated.
  for (std::size_t j = 0; j < row.seen.size(); ++j) {
    if (row.seen[j]) errors.weights[j] = errors.scores[j] = errors.raw[j] = kInfinity;
  }
  if (row.sink != -kInfinity) errors.sink = kInfinity;
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
                          const Storing& storing, GradientSumTerms* terms) {
  if (sum.terms == 0) return 0;
  if (sum.errors == kInfinity) return kInfinity;
  if (std::isnan(value)) return 0;
  if (std::isinf(value)) return kInfinity;
  const double size = std::fabs(scale), larger = std::max(1.0, size);
  if (!(larger * sum.magnitudes <= c.half_range)) return kInfinity;
  const Arithmetic& a = c.arithmetic;
  const auto added = static_cast<double>(sum.terms + sum.parts);
  GradientSumTerms t;
  t.errors = size * sum.errors;
  t.rounding = size * BoundConstants::both(c.gamma(added + roundings), c.of_scale) * sum.magnitudes;
  double error = t.errors + t.rounding;
  if (sum.parts > 0 && narrower(a.stored_head_gradients, a.accumulator)) {
    if (!(size * sum.kept_apart + error <= largest_held(a.stored_head_gradients))) return kInfinity;
    t.parts = unit_roundoff(a.stored_head_gradients) * (size * sum.kept_apart + error) +
              static_cast<double>(sum.parts) * underflow_unit(a.stored_head_gradients, a.flush_to_zero);
    error += t.parts;
  }
  t.underflow = larger * c.eta * (1 + added + sum.operands);
  error += t.underflow;
  const double bound = kGradientEvaluation * storing.bound(std::fabs(value), error);
  t.storage = bound - error;
  if (terms) *terms = t;
  return bound >= 0 ? bound : kInfinity;
}

}  // namespace attest
