#include "reference/softmax/bounds/gradient_deviation.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "reference/call/samples.h"
#include "reference/softmax/bounds/partial_sums.h"

namespace attest {
namespace {

/// Variance of a sum over u^2/3: of its partial sums and of its products.
double sum_variance(std::span<const double> products) {
  return std::inner_product(products.begin(), products.end(), products.begin(), PartialSums(products).squares);
}

double sum_of_sizes(std::span<const double> list) {
  return std::transform_reduce(list.begin(), list.end(), 0.0, std::plus<>(), [](double x) { return std::fabs(x); });
}

std::vector<double> products_of(std::span<const double> x, const double* y) {
  std::vector<double> products(x.size());
  for (std::size_t d = 0; d < x.size(); ++d) products[d] = x[d] * y[d];
  return products;
}

/// Beyond this the error of a weight is no longer in proportion to that of its score.
constexpr double kLinear = 0.03;

/// Squares of smaller terms are no normal numbers of the float64 that this is computed in.
constexpr double kSmallestTerm = 0x1p-400;

}  // namespace

PairFactor RowFactors::alone(const PairFactor& pair) const {
  PairFactor own = pair;
  own.own += square(pair.by_delta) * delta + square(pair.value) * frame;
  own.by_delta = 0;
  return own;
}

RowGradientDeviation::RowGradientDeviation(const Head& head, const Row& row, std::int64_t i, const RowLoss& loss,
                                           const RowGradient& g, std::vector<std::size_t> keys)
    : head_(head), row_(row), loss_(loss), g_(g), keys_(std::move(keys)) {
  const Inputs& inputs = head.inputs();
  if (head.call().runs_forward() || keys_.empty()) return;
  const std::vector<double> q = head.query_row(i);
  const double of_loss = sum_of_sizes(loss.out);
  for (const std::size_t j : keys_) {
    const auto key = static_cast<std::int64_t>(j);
    const std::vector<double> scores = products_of(q, head.key_row(key));
    const std::vector<double> products = products_of(loss.out, head.value_row(key));
    if (pairs_.empty()) same_products_ = mostly_repeated(scores) || mostly_repeated(products);
    const double factor = row.factors.empty() ? 1 : row.factors[j];
    const double of_dropout = row.factors.empty() ? 0 : 3 * square(g.products[j]);
    const double of_value = sum_of_sizes({head.value_row(key), loss.out.size()});
    pairs_.push_back({score_spread(head.call(), row, j, q, scores),
                      square(factor) * sum_variance(products) + of_dropout,
                      factor * (1 + static_cast<double>(loss.out.size()) + of_loss + of_value)});
  }
  const auto number = [&](const ConstTensor& t, std::size_t c) {
    return load(t.data, t.dtype, t.offset(head.batch(), head.head(), i, static_cast<std::int64_t>(c)));
  };
  std::vector<double> products(loss.out.size());
  double of_output = 0;
  for (std::size_t c = 0; c < products.size(); ++c) {
    const double saved = number(inputs.saved_o(), c);
    products[c] = loss.out[c] * saved;
    saved_delta_ += loss.out[c] * (saved - row.output[c]);
    of_output += std::fabs(saved);
  }
  same_products_ = same_products_ || mostly_repeated(products);
  delta_ = sum_variance(products);
  delta_underflow_ = 1 + static_cast<double>(products.size()) + of_loss + of_output;
  saved_lse_ = number(inputs.saved_lse(), 0) - row.lse;
}

bool RowGradientDeviation::claims(const Arithmetic& a) const {
  const Call& p = head_.call();
  if (p.runs_forward() || pairs_.empty() || same_products_ || states_products(a)) return false;
  const auto all = static_cast<std::size_t>(row_.visible_count);
  if ((a.kept_weights || a.delta_from_weights) && pairs_.size() != all) return false;
  const double half_range = a.accumulator == DType::f64 ? 0x1p1000 : 0x1p120;
  return std::isfinite(row_.max) && std::fabs(row_.max) < half_range && row_.largest_product < half_range &&
         std::fabs(saved_lse_) < kLinear && std::isfinite(saved_delta_) && std::isfinite(g_.mean);
}

std::vector<double> RowGradientDeviation::weight_variances(const Arithmetic& a, RowFactors& factors) const {
  const Call& p = head_.call();
  const bool in_base = a.base2 || a.fused_log2e;
  const double blocks = a.kept_weights ? blocks_of(a, p.key_length) : 0;
  std::vector<double> variances;
  for (const Pair& pair : pairs_) {
    const double biased = row_.biased[pair.score.j];
    const double distance = a.no_maximum && a.kept_weights ? biased : (a.kept_weights ? row_.max : row_.lse) - biased;
    double variance = score_variance(p, row_, pair.score, a).biased + (a.fused_log2e ? 2 : 1) * square(distance) +
                      square(2 * a.exp_ulps) + 4 * blocks + square(2 * a.lazy_threshold);
    if (in_base) variance += 4 * square(biased);
    if (a.kept_weights && narrower(a.stored_weights, a.accumulator))
      variance += square(unit_roundoff(a.stored_weights) / unit_roundoff(a.accumulator));
    variances.push_back(variance);
  }
  if (!a.kept_weights) {
    factors.frame = in_base ? 4 * square(row_.lse) : 0;
    return variances;
  }
  // The sum by which all of them are divided.
  std::vector<double> weights;
  for (std::size_t m = 0; m < pairs_.size(); ++m) {
    weights.push_back(row_.weights[pairs_[m].score.j]);
    factors.frame += square(weights.back()) * variances[m];
  }
  factors.frame += PartialSums(weights).squares + division_roundings(a.division) + 1 + 2 * static_cast<double>(a.parts);
  return variances;
}

PairFactor RowGradientDeviation::raw_factor(std::size_t m, double of_weight, const Arithmetic& a) const {
  const Pair& pair = pairs_[m];
  const std::size_t j = pair.score.j;
  const double u = unit_roundoff(a.accumulator), eta = underflow_unit(a.accumulator, a.flush_to_zero);
  // What is computed from the saved numbers, which are perhaps not the exact ones.
  const double rescaled = a.kept_weights ? 1 : std::exp(-saved_lse_), p = row_.weights[j] * rescaled;
  const double product = g_.products[j], mean = a.delta_from_weights ? g_.mean * rescaled : g_.mean + saved_delta_;
  const double difference = product - mean + loss_.lse, score = p == 0 ? 0 : p * difference;
  // Two terms may be added in any order, and each may be multiplied by p first.
  const double of_terms = 3 * (square(product) + square(mean) + square(loss_.lse));
  PairFactor x;
  x.own = square(score) * of_weight + square(p) * (pair.product + of_terms + square(difference)) + square(score);
  x.by_delta = p;
  x.underflow =
      eta * (p * (pair.underflow + (a.delta_from_weights ? 0 : delta_underflow_)) + std::fabs(difference) + 2);
  double slope = 1;
  if (const Call& call = head_.call(); call.softcap) {
    const double tanh = std::tanh(row_.raw[j] / *call.softcap);
    slope = 1 - square(tanh);
    const double of_tanh =
        square(slope / *call.softcap) * (score_variance(call, row_, pair.score, a).raw + square(row_.raw[j])) +
        (square(2 * a.tanh_ulps) + 3) * square(tanh) +
        variance_of_stores(call, row_.capped[j], a) / square(*call.softcap);
    x.own = square(slope) * x.own + square(score) * (4 * square(tanh) * of_tanh + 4);
  }
  x.value = score * slope;
  x.shift = x.value - g_.raw[j];
  x.by_delta *= slope;
  if (narrower(a.stored_score_gradients, a.accumulator)) {
    x.own += square(unit_roundoff(a.stored_score_gradients) / u * x.value);
    x.underflow += underflow_unit(a.stored_score_gradients, a.flush_to_zero);
  }
  return x;
}

RowFactors RowGradientDeviation::of(const Arithmetic& a) const {
  RowFactors factors;
  if (!claims(a)) return factors;
  const double u = unit_roundoff(a.accumulator), eta = underflow_unit(a.accumulator, a.flush_to_zero);
  const std::vector<double> of_weights = weight_variances(a, factors);
  const double largest = *std::ranges::max_element(of_weights) + factors.frame;
  if (!(std::sqrt(u * u / 3 * largest) < kLinear)) return factors;
  factors.claimed = true;
  factors.delta = delta_;
  if (a.delta_from_weights) {
    std::vector<double> terms;
    factors.delta = 0;
    for (std::size_t m = 0; m < pairs_.size(); ++m) {
      const std::size_t j = pairs_[m].score.j;
      const double p = row_.weights[j], product = g_.products[j];
      terms.push_back(p * product);
      // It has errors in common with the weights that it is subtracted beside.
      factors.delta += 2 * square(p) * (pairs_[m].product + square(product) * (of_weights[m] + 1));
    }
    factors.delta += PartialSums(terms).squares;
  }
  const bool stored = narrower(a.stored_weights, a.accumulator);
  for (std::size_t m = 0; m < pairs_.size(); ++m) {
    factors.raw.push_back(raw_factor(m, of_weights[m], a));
    const std::size_t j = pairs_[m].score.j;
    const double r = row_.factors.empty() ? 1 : row_.factors[j];
    PairFactor& x = factors.weights.emplace_back();
    x.value = r * row_.weights[j] * (a.kept_weights ? 1 : std::exp(-saved_lse_));
    x.shift = x.value - r * row_.weights[j];
    const double of_store = stored && !a.kept_weights ? square(unit_roundoff(a.stored_weights) / u) : 0;
    x.own = square(x.value) * (of_weights[m] + of_store + (row_.factors.empty() ? 0 : 3));
    x.underflow = r * (2 * eta + (stored ? underflow_unit(a.stored_weights, a.flush_to_zero) : 0));
  }
  return factors;
}

void GradientDeviation::add(const PairFactor& x, std::span<const double> y, std::span<const double> other, double score,
                            double weight, double product) {
  columns_.resize(y.size());
  factors_.push_back(x.value);
  weights_.push_back(weight);
  products_.push_back(product);
  for (std::size_t c = 0; c < y.size(); ++c) {
    Column& column = columns_[c];
    const double term = x.value * y[c];
    column.terms.push_back(term);
    column.own += square(y[c]) * x.own;
    column.squares += square(term);
    column.by_delta += x.by_delta * y[c];
    column.shift += x.shift * y[c];
    column.underflow += x.underflow * std::fabs(y[c]);
    column.by_score += term * score;
    column.operands += std::fabs(x.value) + std::fabs(y[c]);
    column.sum += term;
    column.part += term;
    column.moments.resize(other.size());
    for (std::size_t d = 0; d < other.size(); ++d) column.moments[d] += term * other[d];
  }
}

void GradientDeviation::end_part() {
  for (Column& column : columns_) {
    column.parts += square(column.part);
    column.part = 0;
  }
}

std::vector<double> GradientDeviation::deviations(const Call& p, std::span<const double> fixed, double scale,
                                                  const Arithmetic& a, const Storing& storing,
                                                  const RowFactors& shared) const {
  std::vector<double> sigmas(columns_.size(), kInfinity);
  const double u = unit_roundoff(a.accumulator), third = u * u / 3, size = std::fabs(scale);
  const double eta = underflow_unit(a.accumulator, a.flush_to_zero);
  if (mostly_repeated(weights_) || mostly_repeated(factors_) || mostly_repeated(products_)) return sigmas;
  const auto count = static_cast<double>(factors_.size());
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    const Column& column = columns_[c];
    const PartialSums sums(column.terms);
    if (mostly_repeated(column.terms) || rounded_alike(column.terms, sums.largest, u) || sums.largest < kSmallestTerm ||
        !std::isfinite(column.sum)) {
      continue;
    }
    double variance = column.own + sums.squares + column.squares + shared.delta * square(column.by_delta) +
                      shared.frame * square(column.sum);
    // What all pairs share: the rounded scale, in the scores and of the sum, and a row or key that is scaled.
    variance += scale_roundings(a) * square(column.by_score) + (scale_roundings(a) + 1) * square(column.sum);
    for (std::size_t d = 0; d < fixed.size(); ++d) variance += square(p.scale_value() * fixed[d] * column.moments[d]);
    double underflow =
        size * column.underflow + std::max(1.0, size) * eta * (1 + count + column.operands) + storing.eta;
    double of_stores = square(storing.u * scale * column.sum);
    if (narrower(a.stored_head_gradients, a.accumulator)) {
      of_stores += square(unit_roundoff(a.stored_head_gradients) * scale) * column.parts;
      underflow += count * underflow_unit(a.stored_head_gradients, a.flush_to_zero);
    }
    // The shift is itself a difference of numbers of float64.
    const double shift = std::fabs(column.shift) + 0x1p-40 * std::fabs(column.sum);
    const double chance = std::sqrt(square(scale) * third * variance + of_stores / 3 + square(underflow));
    // What is known and what may be swallowed is no chance: it counts whole beside kSuspectDeviations of them.
    sigmas[c] = chance + size * (shift + sums.lost(column.terms, u)) / kSuspectDeviations;
  }
  return sigmas;
}

}  // namespace attest
