#include "reference/softmax/bounds/gradient_row.h"

#include <algorithm>
#include <cmath>

#include "reference/call/tensor_table.h"

namespace attest {
namespace {

/// The constants of a forward pass whose weights are bounded, too, as they are before they are stored as a result.
BoundConstants with_weights(const Call& call, const Producer& producer) {
  BoundConstants constants(call, producer);
  constants.wants_scores = true;
  constants.arithmetic.weights_from_lse = false;  // said of the result alone
  constants.storing_weights = Storing();
  return constants;
}

}  // namespace

GradientRow::GradientRow(const Call& call, const Inputs& inputs, const std::vector<Producer>& producers)
    : call_(call), inputs_(inputs), own_(call, {reference_arithmetic(), DType::f64}) {
  for (const Producer& producer : producers) {
    std::vector<Stated>& list = stated_.emplace_back();
    for (const ResultRounding& one : producer.arithmetic.of_results) {
      const Arithmetic arithmetic{one.rounding, {}};
      list.push_back({one.result, with_weights(call, {arithmetic, producer.stored}), {}, false});
    }
    list.push_back({std::nullopt, with_weights(call, producer), {}, false});
  }
}

void GradientRow::set(const Head& head, const Row& row, std::int64_t i) {
  head_ = &head;
  row_ = &row;
  i_ = i;
  loss_ = loss_of(call_, inputs_, head.batch(), head.head(), i);
  differentiate(head, row, loss_, gradient_);
  for (std::vector<Stated>& list : stated_) {
    for (Stated& stated : list) stated.known = false;
  }
  if (stated_.empty()) return;
  sums_ = row_sums(head, row, i);
  if (call_.runs_forward()) return;
  bound_row(head, row, sums_, i, own_, own_bound_);
  const auto off = [&](const ConstTensor& saved, std::int64_t c, double exact, double own) {
    const double number = load(saved.data, saved.dtype, saved.offset(head.batch(), head.head(), i, c));
    if (number == exact || (std::isnan(number) && std::isnan(exact))) return own;
    return std::isfinite(number) && std::isfinite(exact) ? std::fabs(number - exact) + own : kInfinity;
  };
  saved_output_.resize(row.output.size());
  for (std::size_t c = 0; c < row.output.size(); ++c)
    saved_output_[c] = off(inputs_.saved_o(), static_cast<std::int64_t>(c), row.output[c], own_bound_.output[c]);
  saved_lse_ = off(inputs_.saved_lse(), 0, row.lse, own_bound_.lse);
}

const GradientRow::Stated& GradientRow::one_of(std::size_t n, TensorId result) const {
  const std::vector<Stated>& list = stated_[n];
  return *std::ranges::find_if(list, [&](const Stated& one) { return !one.result || one.result == result; });
}

const RowGradientErrors& GradientRow::errors(std::size_t n, TensorId result, TermsOf wanted) {
  Stated& stated = stated_[n][static_cast<std::size_t>(&one_of(n, result) - stated_[n].data())];
  if (!stated.known) find_errors(stated, wanted);
  return stated.errors;
}

void GradientRow::find_errors(Stated& stated, TermsOf wanted) {
  stated.known = true;
  const BoundConstants& c = stated.constants;
  const bool forward = call_.runs_forward();
  if (forward || c.arithmetic.kept_weights) bound_row(*head_, *row_, sums_, i_, c, bound_);
  const ForwardErrors errors = {forward ? bound_.output : saved_output_, forward ? bound_.lse : saved_lse_,
                                bound_.weights};
  bound_row_gradient(*head_, *row_, i_, loss_, gradient_, errors, sums_.ratio, c, stated.errors, wanted);
}

}  // namespace attest
