// Probes of what enters exp: the maximum that is subtracted, the base that it is brought into, and what stands in the
// maximum's place where weights are results.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "harness/probe/arithmetic_probes.h"
#include "harness/probe/pair_weights.h"

namespace attest::probes {
namespace {

/// x * log2(e) in units of log 2, as one product of two numbers of the type.
template <class Real>
double rounded_product(double x) {
  return static_cast<double>(static_cast<Real>(x) * std::numbers::log2e_v<Real>);
}

}  // namespace

ProbeResult maximum(const ProbeTarget& target) {
  // exp of these is no number of any type.
  const double score = 1024;
  Probe p = target.probe("seq=2x2 dim=1 scale=1");
  const Arithmetic a = target.arithmetic(p);
  p.set_q([](std::int64_t i, std::int64_t) { return i == 0 ? 32.0 : -32.0; });
  p.set_k([&](std::int64_t, std::int64_t) { return score / 32; });
  p.set_v([](std::int64_t, std::int64_t) { return 1.0; });
  p.run(target.backend);
  const auto right = [&](std::int64_t i) { return std::fabs(p.out(i, 0) - 1) < 0.25; };
  // Where a maximum is stated one alone is a fault. Where none is, an exp that is clamped may give one of them.
  const bool absent = a.no_maximum ? !(right(0) && right(1)) : !right(0) && !right(1);
  const auto text = [](bool none) { return std::string(none ? "true" : "false"); };
  return Answer{text(a.no_maximum), text(absent),
                absent == a.no_maximum ? Kind::holds
                : absent               ? Kind::is_false
                                       : Kind::too_wide,
                p.shown(0, 0)};
}

ProbeResult fused_log2e(const ProbeTarget& target) {
  const Arithmetic a = target.arithmetic(target.probe("seq=2 dim=2 scale=1"));
  if (a.base2) return std::nullopt;  // whose scores are that product
  if (rounds_maxima(a)) return std::nullopt;
  const PairWeights pairs(target, small_scores(target, a));
  const double u = unit_roundoff(a.accumulator), e_exp = 2 * u * a.exp_ulps;
  int as_product = 0, as_difference = 0, told = 0;
  std::size_t worst = 0;
  double farthest = 0;
  const bool exact_scores = a.scale == ScalePlacement::score && held_scores(a) == a.accumulator;
  for (std::size_t i = 0; exact_scores && i < pairs.size(); ++i) {
    const double x = pairs.x(i);
    const double product = a.accumulator == DType::f64 ? rounded_product<double>(x) : rounded_product<float>(x);
    // How far exp2 of the rounded product is from exp, in nats.
    const auto off = static_cast<double>(
        (static_cast<long double>(product) - x * std::numbers::log2e_v<long double>)*std::numbers::ln2_v<long double>);
    const double others = e_exp + 1.1 * pairs.rest(i) + 4 * u;
    if (std::fabs(off) < 2.5 * others) continue;
    ++told;
    const double seen = std::log(static_cast<double>(pairs.weight(i) / pairs.exact(i)));
    as_product += std::fabs(seen - off) <= others;
    as_difference += std::fabs(seen) <= others;
    if (std::fabs(seen) > farthest) {
      farthest = std::fabs(seen);
      worst = i;
    }
  }
  if (told < 8) return std::nullopt;
  const auto text = [](bool fused) { return std::string(fused ? "true" : "false"); };
  if (as_product == told) {
    return Answer{text(a.fused_log2e), text(true), a.fused_log2e ? Kind::holds : Kind::is_false, pairs.shown(worst)};
  }
  if (as_difference == told) {
    return Answer{text(a.fused_log2e), text(false), a.fused_log2e ? Kind::too_wide : Kind::holds, pairs.shown(worst)};
  }
  return std::nullopt;  // neither: another statement's affair
}

ProbeResult weights_from_lse(const ProbeTarget& target) {
  // Equal scores, so large that a logsumexp holds few digits of the number of keys.
  const Probe small = target.probe("seq=1x3 dim=1 scale=1 out=o,weights");
  const Arithmetic a = target.arithmetic(small);
  if (a.no_maximum || held_scores(a) != a.accumulator) return std::nullopt;
  const double u_held = std::max(target.u_out(), a.normalised_before_storage ? unit_roundoff(held_weights(a)) : 0);
  const double u = unit_roundoff(a.accumulator);
  // What lse is rounded to: an eighth, or what results still show.
  const double grid = 0x1p-3;
  double factor = 1;
  while (factor * factor * 2 * u < grid) factor *= 2;
  if (factor > largest_of(target.dtype) || 8 * u_held > grid || 16 * u * a.exp_ulps > grid) return std::nullopt;
  double worst = 0;
  std::string shown;
  for (const std::int64_t keys : {3, 5, 6, 7, 10, 11}) {
    Probe p = target.probe(fmt::format("seq=1x{} dim=1 scale=1 out=o,weights", keys));
    p.set_q([&](std::int64_t, std::int64_t) { return factor; });
    p.set_k([&](std::int64_t, std::int64_t) { return factor; });
    p.run(target.backend);
    const double error = std::fabs(p.weight(0, 0) * static_cast<double>(keys) - 1);
    if (error <= worst) continue;
    worst = error;
    shown = fmt::format("weights[0,0,0,0] = {:.9g} of \"{}\"", p.weight(0, 0), print_case(p.problem()));
  }
  const bool from_lse = !(worst < grid / 16 + 4 * u_held);
  const auto text = [](bool of_lse) { return std::string(of_lse ? "true" : "false"); };
  return Answer{text(a.weights_from_lse), text(from_lse),
                from_lse == a.weights_from_lse ? Kind::holds
                : from_lse                     ? Kind::is_false
                                               : Kind::too_wide,
                shown};
}

}  // namespace attest::probes
