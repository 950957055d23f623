#include "harness/comparison/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace attest {

std::string_view row_word(std::string_view output) {
  const TensorRow* row = find_row(output);
  if (!row || index_space(row->id) == IndexSpace::query_rows) return "query";
  return index_space(row->id) == IndexSpace::key_rows ? "key" : "row";
}

std::string place_text(std::string_view output, const Index4& i) {
  const std::string_view word = row_word(output) == "key" ? "key " : "";
  return fmt::format("{}[{},{},{}{},{}]", output, i[0], i[1], word, i[2], i[3]);
}

FailureCause Comparison::cause() const {
  if (!failed()) return {};
  if (std::isnan(worst_->expected)) return {Cause::nan_lost, worst_->output};
  if (std::isinf(worst_->expected)) return {Cause::infinity_lost, worst_->output};
  return {not_finite_ > 0 ? Cause::not_finite : Cause::outside_bound, worst_->output};
}

std::string Comparison::describe() const {
  if (!worst_) return "nothing was compared";
  return fmt::format("{} of {} elements are wrong; the worst: {} = {:.9g}, expected {:.9g} within {:.3g}", failures_,
                     compared_, place_text(worst_->output, worst_->index), worst_->got, worst_->expected,
                     worst_->bound);
}

bool Comparison::inconclusive() const {
  std::int64_t unproven = 0;
  for (const Result& one : results_) unproven += one.accuracy.unproven();
  return compared_ > 0 && static_cast<double>(unproven) >= 0.95 * static_cast<double>(compared_);
}

std::size_t Comparison::result(std::string_view output, DType type) {
  const auto known =
      std::find_if(results_.begin(), results_.end(), [&](const Result& one) { return one.output == output; });
  const auto number = static_cast<std::size_t>(known - results_.begin());
  if (known == results_.end()) results_.push_back({std::string(output), ErrorSums(), AccuracyCounter(type)});
  return number;
}

std::vector<SignedBias> Comparison::biases() const {
  std::vector<SignedBias> list;
  for (const Result& one : results_) list.push_back(one.sums.bias(one.output));
  return list;
}

std::vector<Accuracy> Comparison::accuracies() const {
  std::vector<Accuracy> list;
  for (const Result& one : results_) list.push_back(one.accuracy.accuracy(one.output));
  return list;
}

std::vector<TensorId> results_of(const Call& call) {
  std::vector<TensorId> list = outputs_of(call);
  if (!call.wants(Output::o)) std::erase(list, TensorId::out);
  return list;
}

double error_in_row(const Call& call, const GuardedOutputs& outputs, const RowIndex& at, const ResultValues& row,
                    const ResultValues& own, const ResultValues& bound) {
  double largest = 0;
  for (const Output output : {Output::o, Output::lse}) {
    const TensorId id = output == Output::o ? TensorId::out : TensorId::lse;
    for (std::size_t n = 0; call.wants(output) && n < row.of(id).size(); ++n) {
      const double got = outputs.at(id, at.b, at.h, at.i, static_cast<std::int64_t>(n));
      largest = std::max(largest, error_in_bounds(got, row.of(id)[n], bound.of(id)[n] + own.of(id)[n]));
    }
  }
  return largest;
}

std::optional<Deviation> largest_deviation(const Call& call, const Expectation& e, std::size_t producer,
                                           const GuardedOutputs& outputs) {
  std::optional<Deviation> largest;
  for (std::size_t n = 0; n < e.sampled.size(); ++n) {
    const double sigma = e.deviations[producer][n];
    const auto [result, place] = e.sampled[n];
    const double expected = e.of(result)[place], allowed = e.bounds[producer].of(result)[place];
    if (!std::isfinite(sigma) || !std::isfinite(allowed) || !std::isfinite(expected)) continue;
    const Index4 at = e.indices_of(call, e.sampled[n]);
    const double got = outputs.at(result, at[0], at[1], at[2], at[3]), error = std::fabs(got - expected);
    const double ratio = error == 0 ? 0 : error / sigma;
    if (!largest || ratio > largest->ratio)
      largest = {ratio, {std::string(row_of(result).name), at, got, expected, kSuspectDeviations * sigma}};
  }
  return largest;
}

Comparison compare_outputs(const Call& call, const Expectation& expectation, const Bounds& bounds,
                           const GuardedOutputs& outputs) {
  return compare_outputs(call, expectation, bounds, outputs,
                         [](TensorId, std::int64_t, double value) { return value; });
}

}  // namespace attest
