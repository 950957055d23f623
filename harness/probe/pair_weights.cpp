#include "harness/probe/pair_weights.h"

#include <algorithm>
#include <cmath>

namespace attest::probes {
PairWeights::PairWeights(const ProbeTarget& target, const std::vector<Point>& points, double scale, double key_factor)
    : u_out_(target.u_out()), error_of_one_(error_of_one(target)) {
  const std::size_t count = points.size();
  for (const Point& point : points) points_.push_back({scale * point.s, scale * point.x});
  Probe p = target.probe(fmt::format("seq={}x2 dim=3/{} scale={}", count, count, scale));
  a_ = target.arithmetic(p);
  u_ = unit_roundoff(a_.accumulator);
  // Large, so that differences stay normal numbers; a power of two.
  value_ = target.dtype == DType::f64 ? 0x1p500 : target.dtype == DType::f16 ? 0x1p15 : 0x1p60;
  p.set_q([&](std::int64_t i, std::int64_t d) {
    const Point& point = points[static_cast<std::size_t>(i)];
    return d < 2 ? point.s / key_factor : point.x;
  });
  // Key 1 takes its large product in two parts: what is multiplied into keys is rounded otherwise there.
  p.set_k([&](std::int64_t j, std::int64_t d) {
    const double part = j == 0 ? (d == 0 ? 1 : 0) : d == 0 ? 0.375 : 0.625;
    return d < 2 ? part * key_factor : static_cast<double>(j);
  });
  for (std::size_t i = 0; i < count; ++i) {
    subtracted_.push_back(rounded_to(target.dtype, static_cast<double>(exact(i)) * value_) / value_);
  }
  p.set_v([&](std::int64_t j, std::int64_t c) {
    return j == 1 ? value_ : -static_cast<double>(subtracted_[static_cast<std::size_t>(c)]) * value_;
  });
  p.run(target.backend);
  for (std::size_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::int64_t>(i);
    differences_.push_back(static_cast<long double>(p.out(at, at)) / value_);
    shown_.push_back(p.shown(at, at));
    // difference = (weight - subtracted) / (1 + weight)
    weights_.push_back((differences_[i] + subtracted_[i]) / (1 - differences_[i]));
  }
}

long double PairWeights::exact(std::size_t i) const { return std::exp(static_cast<long double>(points_[i].x)); }

double PairWeights::resolution(std::size_t i) const {
  const auto e = static_cast<double>(exact(i));
  const double rest = std::fabs(static_cast<double>(differences_[i])) * (1 + e) / e;
  const double u_weights = narrower(a_.stored_weights, a_.accumulator) ? unit_roundoff(a_.stored_weights) : 0;
  double error = rest * (u_out_ + (16 + 4 * a_.exp_ulps) * u_ + 2 * u_weights);
  if (u_out_ == unit_roundoff(DType::f16)) error += 2 * underflow_unit(DType::f16, false) / (value_ * e);
  // Two quotients that were rounded before they are subtracted.
  if (a_.normalised_before_storage) error += 2 * (division_roundings(a_.division) + 1) * u_;
  if (error_of_one_ > 0 || a_.fused_log2e || a_.key_block == 1)
    error += 2 * u_;  // products of a weight that is not 1 are rounded
  return error;
}

double PairWeights::store(std::size_t i) const {
  if (!narrower(a_.stored_weights, a_.accumulator)) return 0;
  const auto e = static_cast<double>(exact(i));
  const double u_weights = unit_roundoff(a_.stored_weights);
  // Under a maximum whose product with log2(e) is rounded the heavier weight is not 1 either.
  const bool both = a_.normalised_before_storage || error_of_one_ > 0 || a_.fused_log2e;
  return u_weights * (both ? 2.01 : 1) + underflow_unit(a_.stored_weights, a_.flush_to_zero) * (1 + e) / e;
}

double PairWeights::scores(std::size_t i, const Arithmetic& stated) const {
  const double larger = std::fabs(points_[i].s) + std::fabs(points_[i].x);
  const bool exact_scores = !stated.base2 && stated.scale == ScalePlacement::score;
  double error = u_ * std::fabs(points_[i].x);
  if (stated.no_maximum) error = 0;
  if (stated.fused_log2e) {
    error = 2 * u_ * (stated.no_maximum ? std::fabs(points_[i].s) + larger : std::fabs(points_[i].x));
    if (blocks_of(stated, 2) > 1) error += 2 * u_ * larger;  // the maxima of two steps
  }
  if (!exact_scores) {
    error += 1.01 * (scale_roundings(stated) + 3) * u_ * (std::fabs(points_[i].s) + larger);
    if (narrower(held_scores(stated), stated.accumulator)) {
      error += 1.01 * stated.score_stores * unit_roundoff(stated.stored_scores) * (std::fabs(points_[i].s) + larger);
    }
  }
  return error;
}

double PairWeights::others(std::size_t i) const {
  // Where weights are computed twice, the first pass rounded its maximum otherwise than the second rounds its scores.
  const double passes = two_passes(a_) ? 2 : 1;
  return rest(i) + std::expm1(std::min(passes * scores(i, a_), 700.0));
}

std::vector<PairWeights::Point> small_scores(const ProbeTarget& target, const Arithmetic& a) {
  const DType held = held_weights(a);
  double lowest = held == DType::f64 ? -708 : -87;
  if (target.dtype != DType::f64) lowest = std::max(lowest, -87.0);
  if (target.dtype == DType::f16 || held == DType::f16) lowest = -9;
  constexpr std::size_t kPoints = 256;
  std::vector<PairWeights::Point> points;
  for (std::size_t i = 0; i < kPoints; ++i) {
    // Denser towards 0, where errors of scores are smallest.
    const double t = static_cast<double>(i + 1) / kPoints;
    points.push_back({0, rounded_to(target.dtype, rounded_to(DType::bf16, lowest * t * t))});
  }
  return points;
}

}  // namespace attest::probes
