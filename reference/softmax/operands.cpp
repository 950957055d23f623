#include "reference/softmax/operands.h"

#include <algorithm>
#include <cmath>

#include "reference/softmax/key_place.h"

namespace attest {
namespace {

double number_at(const Inputs& inputs, TensorId id, std::int64_t b, std::int64_t h, std::int64_t row, std::int64_t d) {
  const ConstTensor& from = inputs.at(id);
  return load(from.data, from.dtype, from.offset(b, h, row, d));
}

class Steps {
 public:
  Steps(const Call& call, const Inputs& inputs, Operand operand, std::span<double> values)
      : call_(call), inputs_(inputs), operand_(operand), x_(values) {}

  void normalise();
  void rotate(std::int64_t position);
  PreparationCost cost() const { return cost_; }

 private:
  /// `of_data`: computed from numbers that are finite. What isn't decides the class of the result.
  void reach(double magnitude, bool of_data) {
    if (of_data && !(magnitude <= cost_.largest_step))
      cost_.largest_step = std::isnan(magnitude) ? kInfinity : magnitude;
  }

  const Call& call_;
  const Inputs& inputs_;
  Operand operand_;
  std::span<double> x_;
  PreparationCost cost_;
};

void Steps::normalise() {
  double squares = 0, finite = 0, of_errors = 0;
  for (const double x : x_) {
    squares += x * x;
    if (std::isfinite(x)) finite += x * x;
  }
  for (const double m : cost_.magnitudes) of_errors += m * m;
  const double mean = squares / static_cast<double>(x_.size()) + *call_.norm;
  const double factor = 1 / std::sqrt(mean);
  reach(finite, true);
  // By how much the root is off where the row is: by Cauchy, |sum x*e| <= ||x|| * ||e||.
  const double length = std::sqrt(mean * static_cast<double>(x_.size()));
  const double of_root = 2 * std::sqrt(of_errors) / length;
  double largest_weight = 0, largest_error = 0;
  const TensorId weights = operand_ == Operand::query ? TensorId::q_norm : TensorId::k_norm;
  const bool rotated = !cost_.empty();
  if (!rotated) cost_.magnitudes.assign(x_.size(), 0);
  for (std::size_t t = 0; t < x_.size(); ++t) {
    const double w = number_at(inputs_, weights, 0, 0, 0, static_cast<std::int64_t>(t));
    reach(std::fabs(w) * std::max(factor, 1.0), true);
    reach(std::fabs(w * x_[t]), std::isfinite(x_[t]));
    largest_weight = std::max(largest_weight, std::fabs(w));
    x_[t] = x_[t] * factor * w;
    cost_.magnitudes[t] = std::fabs(w) * factor * cost_.magnitudes[t] + std::fabs(x_[t]) * (1 + of_root);
    largest_error = std::max(largest_error, std::fabs(x_[t]));
  }
  // What was lost before is multiplied like the rest, and moves the root; each step of its own may lose eta.
  const double before = cost_.underflow * (largest_weight * factor +
                                           2 * largest_error / length * std::sqrt(static_cast<double>(x_.size())));
  cost_.underflow = before + 2 + largest_weight + factor;
  // A first-order account of the root: rows so short beside their pairs' magnitudes prove nothing.
  constexpr double kLargestRatio = 64;
  if (of_root > kLargestRatio) cost_.largest_step = kInfinity;
}

void Steps::rotate(std::int64_t position) {
  const std::int64_t pairs = call_.rotated_dims() / 2;
  if (cost_.empty()) cost_.magnitudes.assign(x_.size(), 0);  // what is not rotated is exact
  double largest = 1;
  for (std::int64_t r = 0; r < pairs; ++r) {
    const double c = number_at(inputs_, TensorId::cos, 0, 0, position, r);
    const double s = number_at(inputs_, TensorId::sin, 0, 0, position, r);
    const bool halves = call_.rope == Rope::halves;
    const auto first = static_cast<std::size_t>(halves ? r : 2 * r);
    const auto second = static_cast<std::size_t>(halves ? r + pairs : 2 * r + 1);
    const double x = x_[first], y = x_[second];
    x_[first] = x * c - y * s;
    x_[second] = x * s + y * c;
    // A product's own roundings, and what its factor was off by; the norm's is a multiple of the factor.
    const double of_first = std::fabs(x * c) + std::fabs(y * s), of_second = std::fabs(x * s) + std::fabs(y * c);
    reach(std::max(of_first, of_second), std::isfinite(x) && std::isfinite(y));
    cost_.magnitudes[first] = of_first;
    cost_.magnitudes[second] = of_second;
    largest = std::max({largest, std::fabs(c), std::fabs(s)});
  }
  cost_.underflow = 2 * largest * cost_.underflow + 2;
}

}  // namespace

std::int64_t position_of(const Call& call, const Inputs& inputs, Operand operand, std::int64_t b, std::int64_t row) {
  if (call.rope_positions == 0) return operand == Operand::key ? row : row + call.diagonal_offset(b);
  const ConstTensor& list = inputs.at(operand == Operand::key ? TensorId::k_positions : TensorId::q_positions);
  return static_cast<const std::int32_t*>(list.data)[list.offset(b, 0, row, 0)];
}

bool is_prepared(const Call& call, const Inputs& inputs, Operand operand, std::int64_t b, std::int64_t row) {
  if (!call.prepares_operands()) return false;
  if (operand == Operand::query || !call.rotated_cache) return true;
  return call.append ? is_stored_prepared(call, b, row) : row >= inputs.past_length(b);
}

bool is_stored_prepared(const Call& call, std::int64_t b, std::int64_t row) {
  return call.append && call.rotated_cache && row >= call.first_new_key(b) && row < call.key_count(b);
}

double kept_cost(const Call& call) {
  // As BoundConstants::of_preparation, with room for what it adds to it.
  const double steps = (call.norm ? static_cast<double>(call.key_dim) / 2 + 12 : 0) + 2;
  return 2 * steps * unit_roundoff(accumulator_of(call.dtype));
}

PreparationCost prepare_row(const Call& call, const Inputs& inputs, Operand operand, std::int64_t b, std::int64_t row,
                            std::span<double> values) {
  Steps steps(call, inputs, operand, values);
  if (call.norm && !call.norm_after_rope) steps.normalise();
  if (call.rope != Rope::none) steps.rotate(position_of(call, inputs, operand, b, row));
  if (call.norm && call.norm_after_rope) steps.normalise();
  return steps.cost();
}

PreparationCost prepare_for_cache(const Call& call, const Inputs& inputs, std::int64_t b, std::int64_t row,
                                  std::span<double> values) {
  PreparationCost cost = prepare_row(call, inputs, Operand::key, b, row, values);
  const DType cache = inputs.k().dtype, accumulator = accumulator_of(call.dtype);
  for (std::size_t t = 0; t < values.size(); ++t) {
    const double x = values[t], stored = as_stored(cache, x);
    // Smallest normal number: subnormal ones may be flushed.
    const double off = kept_cost(call) * cost.magnitudes[t] + smallest_normal(accumulator) * cost.underflow;
    values[t] = stored;
    // Every number that may be computed is rounded to the same one, but near the middle between two.
    const bool is_sure = as_stored(cache, x - off) == stored && as_stored(cache, x + off) == stored;
    if (is_sure || std::isnan(x)) {
      cost.stored.push_back(0);
    } else if (is_floating(cache)) {
      const double of_stores = 2 * unit_roundoff(cache) * (std::fabs(x) + off) + 2 * smallest_subnormal(cache);
      cost.stored.push_back(std::fabs(x) + off > largest_of(cache) / 2 ? kInfinity : off + of_stores);
    } else {
      cost.stored.push_back(off + 1);
    }
  }
  return cost;
}

ScoreScale score_scale(const Call& call, const Inputs& inputs, std::int64_t b, std::int64_t h, std::int64_t i) {
  ScoreScale scale;
  const auto multiply = [&](double factor) {
    scale.value *= factor;
    scale.larger *= std::max(1.0, std::fabs(factor));
    scale.least *= std::min(1.0, std::fabs(factor));
  };
  multiply(call.scale_value());
  if (call.has_head_scales()) multiply(number_at(inputs, TensorId::head_scales, 0, h, 0, 0));
  if (call.has_query_scales()) multiply(number_at(inputs, TensorId::query_scales, b, 0, i, 0));
  return scale;
}

}  // namespace attest
