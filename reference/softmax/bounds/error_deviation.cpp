#include "reference/softmax/bounds/error_deviation.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "reference/arithmetic/rounding.h"
#include "reference/call/samples.h"
#include "reference/softmax/bounds/partial_sums.h"

namespace attest {
namespace {

/// Values this close to underflow lose bits in products that the model takes for exact to 1 + u.
constexpr double kSmallestValue = 0x1p-90;

/// Squares of smaller terms are no normal numbers of the float64 that this is computed in.
constexpr double kSmallestTerm = 0x1p-400;

}  // namespace

RowDeviation::RowDeviation(const Head& head, const Row& row, std::int64_t i, std::span<const std::int64_t> columns)
    : head_(head),
      row_(row),
      columns_(columns.begin(), columns.end()),
      shared_(columns.size()),
      moments_(columns.size()) {
  const Call& p = head.call();
  const auto dim = static_cast<std::size_t>(p.key_dim);
  const double scale = p.scale_value();
  const std::vector<double> q = head.query_row(i);
  for (const double x : q) largest_query_ = std::max(largest_query_, std::fabs(x));
  std::vector<double> products(dim);
  std::vector<double> moments(columns_.size() * dim);  ///< sum_j p_j * (v_jc - o_c) * k_jd
  for (std::size_t j = 0; j < row.seen.size(); ++j) {
    if (!row.seen[j]) continue;
    const double* k = head.key_row(static_cast<std::int64_t>(j));
    for (std::size_t d = 0; d < dim; ++d) products[d] = q[d] * k[d];
    for (std::size_t d = 0; d < dim; ++d) largest_key_ = std::max(largest_key_, std::fabs(k[d]));
    // Fills that repeat do so in every key: one is enough, and sorting all of them would cost more than the rest.
    if (keys_.empty()) same_products_ = mostly_repeated(products);
    keys_.push_back(score_spread(p, row, j, q, products));
    const double* v = head.value_row(static_cast<std::int64_t>(j));
    const double factor = row.factors.empty() ? 1 : row.factors[j];
    for (std::size_t n = 0; n < columns_.size(); ++n) {
      const auto c = static_cast<std::size_t>(columns_[n]);
      largest_value_ = std::max(largest_value_, std::fabs(v[c]));
      const double pull = row.weights[j] * (factor * v[c] - row.output[c]);
      if (pull == 0) continue;
      for (std::size_t d = 0; d < dim; ++d) moments[n * dim + d] += pull * k[d];
    }
  }
  for (std::size_t n = 0; n < columns_.size(); ++n) {
    for (std::size_t d = 0; d < dim; ++d) shared_[n] += square(scale * q[d] * moments[n * dim + d]);
    for (std::size_t d = 0; d < dim; ++d) moments_[n] += square(scale * moments[n * dim + d]);
  }
}

bool RowDeviation::claims(const Arithmetic& a) const {
  const Call& p = head_.call();
  if (p.prepares_operands() || p.scales != Scales::none || p.unscaled_cap) return false;  // no model of these yet
  if (p.has_stored_scales()) return false;  // equal codes round alike, and a scale's rounding is common to many
  if (narrows_weights(a) || approximates_exp(a)) return false;  // weights that are close to each other round alike
  // A step is common to many, and what is cut has one sign. Few numbers of a format are there to differ.
  if (states_steps(a)) return false;
  for (const OperandFormat format : {a.query_operand, a.key_operand, a.value_operand, a.weight_operand}) {
    if (format > OperandFormat::e5m2) return false;
  }
  if (sums_otherwise(a)) return false;  // nor of these: roundings to zero have one sign, aligned terms share a unit
  const double half_range = a.accumulator == DType::f64 ? 0x1p1000 : 0x1p120;
  // An operand may have a factor of the scale when it is rounded.
  const double factor = std::max(1.0, std::fabs(head_.call().scale_value())) * (a.base2 ? 1.5 : 1);
  const auto held = [&](OperandFormat format, double largest) {
    return largest <= rounding_of(format, a.flush_to_zero).largest;
  };
  if (!held(a.query_operand, factor * largest_query_) || !held(a.key_operand, factor * largest_key_) ||
      !held(a.value_operand, largest_value_))
    return false;
  return !keys_.empty() && !same_products_ && std::isfinite(row_.max) && row_.largest_product < half_range &&
         std::fabs(row_.max) < half_range && largest_value_ < half_range && largest_value_ > kSmallestValue;
}

double RowDeviation::shift_variance(double score, const Arithmetic& a) const {
  return (a.fused_log2e ? 2 : a.no_maximum ? 0 : 1) * square(a.no_maximum ? score : row_.max - score);
}

/// theta_j^2 over u^2/3: variance of the relative error of each unnormalised weight.
std::vector<double> RowDeviation::weight_variances(const Arithmetic& a) const {
  const Call& p = head_.call();
  const double of_exp = square(2 * a.exp_ulps), blocks = blocks_of(a, p.key_length);
  std::vector<double> variances;
  for (const ScoreSpread& key : keys_) {
    const double biased = row_.biased[key.j], variance = score_variance(p, row_, key, a).biased;
    variances.push_back(variance + shift_variance(biased, a) + of_exp + 4 * blocks + square(2 * a.lazy_threshold));
  }
  return variances;
}

RowDeviation::Terms RowDeviation::terms_of(std::size_t n, double u) const {
  const auto c = static_cast<std::size_t>(columns_[n]);
  Terms terms;
  std::vector<double> weights, products;
  if (row_.sink != -kInfinity) weights.push_back(std::exp(row_.sink - row_.lse));
  for (const ScoreSpread& key : keys_) {
    const double factor = row_.factors.empty() ? 1 : row_.factors[key.j];
    terms.values.push_back(factor * head_.value_row(static_cast<std::int64_t>(key.j))[c]);
    weights.push_back(row_.weights[key.j]);
    products.push_back(weights.back() * terms.values.back());
  }
  const PartialSums of_weights(weights), of_products(products);
  terms.largest = of_products.largest;
  terms.partials = of_products.squares;
  terms.weight_partials = of_weights.squares;
  terms.lost = of_products.lost(products, u) + of_weights.lost(weights, u) * std::fabs(row_.output[c]);
  terms.repeated = rounded_alike(weights, of_weights.largest, u) || rounded_alike(products, of_products.largest, u) ||
                   mostly_repeated(std::move(products)) || mostly_repeated(std::move(weights));
  return terms;
}

/// A maximum that rises rescales everything before by one factor, whose error all those keys share. What comes before
/// is an implementation's own choice: from either end, or in pairs of blocks, whichever is largest.
double RowDeviation::rescaling_variance(const std::vector<double>& pulls, double of_sink, const Arithmetic& a) const {
  if (a.key_block == 0) return 0;
  const double of_factor = square(2 * a.exp_ulps) + 2;
  // The factor is taken for the old maximum as it is, and sums were made for its rounded product.
  const auto error = [&](double pulled, double max) {
    if (max == -kInfinity) return 0.0;  // nothing that has a weight
    return (of_factor + (a.fused_log2e ? square(max) : 0)) * square(pulled);
  };
  struct State {
    double pulled, max;
  };
  const auto walk = [&](auto key_at) {
    State before{of_sink, row_.sink};
    double variance = 0;
    for (std::size_t n = 0; n < pulls.size(); ++n) {
      const std::size_t m = key_at(n);
      if (row_.biased[keys_[m].j] > before.max) {
        variance += error(before.pulled, before.max);
        before.max = row_.biased[keys_[m].j];
      }
      before.pulled += pulls[m];
    }
    return variance;
  };
  const double forwards = walk([](std::size_t n) { return n; });
  const double backwards = walk([&](std::size_t n) { return pulls.size() - 1 - n; });
  std::vector<State> states;
  if (row_.sink != -kInfinity) states.push_back({of_sink, row_.sink});
  for (std::size_t m = 0, block = 0; m < pulls.size(); ++m) {
    const std::size_t own = keys_[m].j / static_cast<std::size_t>(a.key_block);
    if (m == 0 || own != block) states.push_back({0, -kInfinity});
    block = own;
    states.back().pulled += pulls[m];
    states.back().max = std::max(states.back().max, row_.biased[keys_[m].j]);
  }
  double in_pairs = 0;
  for (; states.size() > 1; states.resize((states.size() + 1) / 2)) {
    for (std::size_t n = 0; 2 * n < states.size(); ++n) {
      State one = states[2 * n];
      if (2 * n + 1 < states.size()) {
        const State& other = states[2 * n + 1];
        const State& lower = one.max < other.max ? one : other;
        in_pairs += error(lower.pulled, lower.max);
        one = {one.pulled + other.pulled, std::max(one.max, other.max)};
      }
      states[n] = one;
    }
  }
  return std::max({forwards, backwards, in_pairs});
}

/// sigma^2 over u^2/3, but for the storing of P and of the result.
double RowDeviation::column_variance(std::size_t n, const Terms& terms, const Arithmetic& a,
                                     const std::vector<double>& weights) const {
  const double o = row_.output[static_cast<std::size_t>(columns_[n])];
  const double in_product =
      (a.normalised_before_storage ? division_roundings(a.division) : 0) + (row_.factors.empty() ? 1 : 5);
  double variance = terms.partials + o * o * terms.weight_partials;
  double of_scale = 0, of_log2e = 0, pulled = 0;
  if (row_.sink != -kInfinity) {  // one more key, first of all, whose value is 0 and whose score is exact
    pulled = -std::exp(row_.sink - row_.lse) * o;
    of_log2e = row_.sink * pulled;
    variance += square(pulled) * (shift_variance(row_.sink, a) + square(2 * a.exp_ulps) +
                                  4 * blocks_of(a, head_.call().key_length) + (a.base2 ? 2 * square(row_.sink) : 0));
  }
  std::vector<double> pulls(keys_.size());
  for (std::size_t m = 0; m < keys_.size(); ++m) {
    const std::size_t j = keys_[m].j;
    const double weight = row_.weights[j], pull = weight * (terms.values[m] - o);
    pulls[m] = pull;
    variance += in_product * square(weight * terms.values[m]) + pull * pull * weights[m];
    of_scale += row_.raw[j] * pull;
    of_log2e += row_.biased[j] * pull;
  }
  if (a.fused_log2e) variance += square(of_log2e);  // its rounded factor
  return variance + rescaling_variance(pulls, pulled, a) + scale_roundings(a) * square(of_scale) + shared_[n] +
         (division_roundings(a.division) + 1 + a.output_roundings) * o * o;
}

/// What rounded operands add to sigma^2, but for the roundings of keys, which are in their scores. All keys share a
/// query's rounding, and equal values round alike.
double RowDeviation::operand_variance(std::size_t n, const Arithmetic& a) const {
  const FormatRounding query = rounding_of(a.query_operand, a.flush_to_zero);
  const FormatRounding value = rounding_of(a.value_operand, a.flush_to_zero);
  double variance = (square(query.u) * shared_[n] + square(query.eta) * moments_[n]) / 3;
  if (value.u == 0) return variance;
  std::map<double, double> weight_of_value;
  for (const ScoreSpread& key : keys_) {
    const double v = head_.value_row(static_cast<std::int64_t>(key.j))[static_cast<std::size_t>(columns_[n])];
    weight_of_value[v] += row_.weights[key.j] * (row_.factors.empty() ? 1 : row_.factors[key.j]);
  }
  for (const auto& [v, weight] : weight_of_value) {
    variance += square(weight) * (square(value.u * v) + square(value.eta)) / 3;
  }
  return variance;
}

/// What merging parts adds to sigma^2 over u^2/3. The errors of a part's weight are common to all of its keys, which
/// follow each other.
double RowDeviation::merge_variance(std::size_t n, const Terms& terms, const Arithmetic& a) const {
  if (a.parts == 0) return 0;
  const std::int64_t length = head_.call().key_length;
  const double u = unit_roundoff(a.accumulator), o = row_.output[static_cast<std::size_t>(columns_[n])];
  const double stored = narrower(a.stored_parts, a.accumulator) ? square(unit_roundoff(a.stored_parts) / u) : 0;
  const auto parts = static_cast<double>(a.parts), log_sum = std::log(static_cast<double>(keys_.size()) + 1);
  double variance = 2 * parts * o * o;
  std::size_t m = 0;
  for (std::int64_t part = 1; part <= a.parts; ++part) {
    double weight = 0, product = 0;
    for (; m < keys_.size(); ++m) {
      const std::size_t j = keys_[m].j;
      if (static_cast<std::int64_t>(j) >= length / a.parts * part + length % a.parts * part / a.parts) break;
      weight += row_.weights[j];
      product += row_.weights[j] * terms.values[m];
    }
    if (weight == 0) continue;
    const double below = std::log(weight), lse = row_.lse + below;
    const double of_weight =
        square(lse) + square(below) + square(2 * a.log_ulps * log_sum) + parts * square(2 * a.exp_ulps);
    variance += of_weight * square(product - weight * o) +
                (2 * parts + division_roundings(a.division) + stored) * square(product);
  }
  return variance;
}

std::vector<double> RowDeviation::of(const Producer& producer) const {
  const Arithmetic& a = producer.arithmetic;
  std::vector<double> deviations(columns_.size(), kInfinity);
  if (!claims(a)) return deviations;
  // Under no maximum weights keep their size, and are lost outside of this range.
  const double in_range = rounding_of_weights(a).largest < 0x1p100 ? 6 : a.accumulator == DType::f64 ? 600 : 60;
  if (a.no_maximum && !(std::fabs(row_.lse) < in_range && std::fabs(row_.max) < in_range)) return deviations;
  const double u = unit_roundoff(a.accumulator), third = u * u / 3;
  const std::vector<double> weights = weight_variances(a);
  // Beyond this the error of a weight is no longer in proportion to that of its score.
  constexpr double kLinear = 0.03;
  if (!(std::sqrt(third * *std::max_element(weights.begin(), weights.end())) < kLinear)) return deviations;

  const Storing storing(a, producer.type_of(head_.call(), TensorId::out));
  const FormatRounding in_product = rounding_of_weights(a);
  const double of_stored = square(in_product.u) / 3;
  const double eta = underflow_unit(a.accumulator, a.flush_to_zero);
  const double eta_weights = in_product.eta;
  const double sum = a.no_maximum ? std::exp(row_.lse) : row_.sum;
  const double lambda = a.normalised_before_storage ? 1 : sum, lag = std::exp(a.lazy_threshold);
  double kept = 1;  // sum p_j * r_j, r_j the dropout factor
  if (!row_.factors.empty()) {
    kept = std::inner_product(row_.weights.begin(), row_.weights.end(), row_.factors.begin(), 0.0);
  }
  for (std::size_t n = 0; n < columns_.size(); ++n) {
    const double o = row_.output[static_cast<std::size_t>(columns_[n])];
    const Terms terms = terms_of(n, u);
    if (terms.repeated || terms.largest < kSmallestTerm || !std::isfinite(o)) continue;
    double absolute = 0, rounded = 0;
    for (std::size_t m = 0; m < keys_.size(); ++m) {
      absolute += std::fabs(terms.values[m]);
      rounded += square(row_.weights[keys_[m].j] * (a.sum_of_stored ? terms.values[m] - o : terms.values[m]));
    }
    const double in_sum = a.sum_of_stored ? static_cast<double>(keys_.size()) * std::fabs(o) : 0;
    double underflow = eta * lag * absolute / sum + eta_weights * (absolute + in_sum) / lambda +
                       eta * (static_cast<double>(keys_.size()) + 1) / lambda + storing.eta;
    if (a.flush_to_zero) underflow += eta * kept;
    const double in_sums = column_variance(n, terms, a, weights) + merge_variance(n, terms, a);
    const double variance =
        third * in_sums + operand_variance(n, a) + of_stored * rounded + square(storing.u * o) / 3 + square(underflow);
    deviations[n] = std::sqrt(variance) + terms.lost / kSuspectDeviations;
  }
  return deviations;
}

}  // namespace attest
