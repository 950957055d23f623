#include "harness/verdict/file_bounds.h"

#include <algorithm>
#include <cmath>

#include "reference/arithmetic/rounding.h"
#include "reference/operators/operator.h"
#include "reference/softmax/bounds/error_bound.h"

namespace attest {
namespace {

/// A bound is derived once for the producer and once for the reference, which computes in float64.
std::vector<double> both(const std::vector<double>& producer, const std::vector<double>& own) {
  std::vector<double> sum = producer;
  for (std::size_t n = 0; n < sum.size(); ++n) sum[n] += own[n];
  return sum;
}

double error_of(std::span<const double> errors, std::size_t n) { return errors.empty() ? 0 : errors[n]; }

/// A sum, the sum of its terms' sizes with their errors, and of the errors alone.
struct Summed {
  double sum = 0, sizes = 0, moved = 0;
};

Summed summed(std::span<const double> terms, std::span<const double> errors) {
  Summed all;
  for (std::size_t n = 0; n < terms.size(); ++n) {
    const double error = error_of(errors, n);
    all.sum += terms[n];
    all.sizes += std::fabs(terms[n]) + error;
    all.moved += error;
  }
  return all;
}

}  // namespace

FileBounds::FileBounds(const Case& source, const Inputs& inputs) : problem_(source.problem), inputs_(inputs) {
  if (!source.golden->producer) return;
  producer_ = Producer{*source.golden->producer, {}};
  problem_.call.set_pass(Pass::forward);
  problem_.call.outputs = {Output::o};
  const auto holds = [&](const char* name) { return source.golden->stages.contains(name); };
  if (holds("raw") || holds("scores") || holds("raw_scores") || holds("score_row_sums") || holds("score_column_sums") ||
      holds("variance_before") || holds("variance_after")) {
    problem_.call.outputs.push_back(Output::raw);
  }
  if (holds("capped")) problem_.call.outputs.push_back(Output::capped);
  if (holds("biased") || holds("masked_scores")) problem_.call.outputs.push_back(Output::biased);
  if (holds("weights") || holds("row_sums")) problem_.call.outputs.push_back(Output::weights);
  expected_ = expect(problem_, inputs, {*producer_}, 2, kInfinity);
}

std::vector<double> FileBounds::of_rows(const std::string& name) const {
  if (!producer_) return {};
  const auto of = [&](TensorId result) { return both(expected_.bounds.front().of(result), expected_.own.of(result)); };
  if (name == "output") return of(TensorId::out);
  if (name == "lse") return of(TensorId::lse);
  if (name == "raw" || name == "scores") return of(TensorId::raw);
  if (name == "capped") return of(TensorId::capped);
  if (name == "biased" || name == "masked_scores") return of(TensorId::biased);
  if (name == "weights") return of(TensorId::weights);
  if (name == "raw_scores") {  // what the scale's own roundings add is part of the bound of a scaled score
    std::vector<double> bounds = of(TensorId::raw);
    for (double& bound : bounds) bound /= std::fabs(problem_.call.scale_value());
    return bounds;
  }
  return {};
}

std::vector<double> FileBounds::of_present(TensorId output) const {
  std::vector<Producer> producers = {{reference_arithmetic(), DType::f64}};
  if (producer_) producers.push_back(*producer_);
  const WholeResults results = operator_of(problem_).whole(problem_, inputs_, {output}, producers, {});
  const auto of = [&](std::size_t n) { return results.bounds[n].of(output); };
  return producer_ ? both(of(1), of(0)) : of(0);
}

double FileBounds::gamma(double roundings) const {
  const double nu = roundings * unit_roundoff(producer_->arithmetic.accumulator);
  return nu < 1 ? nu / (1 - nu) : kInfinity;
}

double FileBounds::stored(double value, double error) const {
  return Storing(producer_->arithmetic, problem_.call.dtype).bound(std::fabs(value), error) * kEvaluation;
}

double FileBounds::of_sum(std::span<const double> terms, std::span<const double> errors) const {
  if (!producer_) return 0;
  const Summed all = summed(terms, errors);
  return stored(all.sum, all.moved + gamma(static_cast<double>(terms.size())) * all.sizes);
}

double FileBounds::of_mean(std::span<const double> values, std::span<const double> errors) const {
  if (!producer_ || values.empty()) return 0;
  const Summed all = summed(values, errors);
  const auto count = static_cast<double>(values.size());
  return stored(all.sum / count, (all.moved + gamma(count + 1) * all.sizes) / count);
}

double FileBounds::of_variance(std::span<const double> values, double count, std::span<const double> errors) const {
  if (!producer_ || values.empty() || count <= 0) return 0;
  const double shift = of_mean(values, errors), u = unit_roundoff(producer_->arithmetic.accumulator);
  double middle = 0, squares = 0, most = 0;
  for (double value : values) middle += value / static_cast<double>(values.size());
  for (std::size_t n = 0; n < values.size(); ++n) {
    const double distance = std::fabs(values[n] - middle);
    const double moved = error_of(errors, n) + shift;
    const double largest = distance + moved + u * (distance + moved);  // of the distance as computed
    squares += distance * distance;
    most += largest * largest;
  }
  // Each square, their sum and its division round.
  const double error = (most - squares) + gamma(static_cast<double>(values.size()) + 2) * most;
  return stored(squares / count, error / count);
}

double FileBounds::of_deviation(std::span<const double> values) const {
  if (!producer_ || values.empty()) return 0;
  const auto count = static_cast<double>(values.size());
  double middle = 0, squares = 0;
  for (double value : values) middle += value / count;
  for (double value : values) squares += (value - middle) * (value - middle);
  const double exact = squares / count, root = std::sqrt(exact), error = of_variance(values, count);
  // |sqrt(a) - sqrt(b)| is at most |a - b| / sqrt(a), and at most sqrt(|a - b|) where a is small.
  const double moved = root > 0 ? std::min(error / root, std::sqrt(error)) : std::sqrt(error);
  return stored(root, moved + unit_roundoff(producer_->arithmetic.accumulator) * (root + moved));
}

}  // namespace attest
