// Probes of the sums: in which type they are, what is divided when, and which weights the row sum adds.
#include <algorithm>
#include <cmath>

#include "harness/probe/arithmetic_probes.h"
#include "harness/probe/pair_weights.h"

namespace attest::probes {

ProbeResult accumulator(const ProbeTarget& target) {
  // large + small + small + ... - large in P*V: the small ones survive in a wider sum alone, wherever the large stand.
  constexpr std::int64_t kKeys = 256;  // the quotient is exact
  const bool half = target.dtype == DType::f16;
  const double large = half ? 0x1p15 : 0x1p36, small = half ? 0x1p-20 : 1;
  bool wide = true;
  std::string shown;
  Arithmetic a;
  constexpr std::int64_t kPlaces[][2] = {{0, 255}, {1, 128}, {100, 101}, {17, 250}};
  for (const auto& place : kPlaces) {
    Probe p = target.probe(fmt::format("seq=1x{} dim=1", kKeys));
    p.set_q(zero);
    p.set_v([&](std::int64_t j, std::int64_t) { return j == place[0] ? large : j == place[1] ? -large : small; });
    p.run(target.backend);
    a = target.arithmetic(p);
    const bool here = std::fabs(p.out(0, 0) * kKeys / small - (kKeys - 2)) < 64;
    if (wide) shown = p.shown(0, 0);
    wide = wide && here;
  }
  const bool says_wide = a.accumulator == DType::f64;
  const auto name = [](bool is_wide) { return std::string(is_wide ? "f64" : "f32"); };
  return Answer{name(says_wide), name(wide),
                wide == says_wide ? Kind::holds
                : says_wide       ? Kind::is_false
                                  : Kind::too_wide,
                shown};
}

ProbeResult normalised(const ProbeTarget& target) {
  // Equal weights and values that add up to little: the weights' own quotients make sums that don't cancel.
  if (error_of_one(target) > 0) return std::nullopt;
  const Arithmetic a = target.arithmetic(target.probe("seq=1x7 dim=1"));
  const double u = unit_roundoff(a.accumulator);
  const bool weights_stored = narrower(a.stored_weights, a.accumulator);
  if (narrower(target.dtype, DType::f32) && (weights_stored || a.accumulator == DType::f64)) return std::nullopt;
  // A weight that is stored has so few bits that its products cancel: what is left is the error of its store.
  if (weights_stored && unit_roundoff(a.stored_weights) < 8 * target.u_out()) return std::nullopt;
  // 3 * large - 2 * large - large + least
  const double large = target.dtype == DType::f16 ? 0x1p13 : 0x1p20, least = large * u * 32;
  double worst = 0;
  std::string shown_by;
  for (std::int64_t keys : {5, 7, 11, 13}) {
    Probe p = target.probe(fmt::format("seq=1x{} dim=1", keys));
    p.set_q(zero);
    p.set_v([&](std::int64_t j, std::int64_t) {
      return j == 0 ? 3 * large : j == 1 ? -2 * large : j == 2 ? -large : j == 3 ? least : 0;
    });
    p.run(target.backend);
    const double exact = least / static_cast<double>(keys);
    const double error = std::fabs(p.out(0, 0) - exact) / exact;
    if (error >= worst) shown_by = p.shown(0, 0);
    worst = std::max(worst, error);
  }
  const bool shown = !(worst <= (division_roundings(a.division) + 2) * u + 2 * target.u_out());
  const auto name = [](bool before) { return std::string(before ? "true" : "false"); };
  return Answer{name(a.normalised_before_storage), name(shown),
                shown == a.normalised_before_storage ? Kind::holds
                : shown                              ? Kind::is_false
                                                     : Kind::too_wide,
                shown_by};
}

ProbeResult which_sum(const ProbeTarget& target) {
  // One key of weight 1, 15 of weight exp(x): lse tells whether their sum adds what was stored. All are taken in one
  // step, for a later one may stand first.
  Arithmetic a = target.arithmetic(target.probe("seq=1x16 dim=1 scale=1 out=o,lse"));
  const std::int64_t keys = a.key_block > 0 ? std::min<std::int64_t>(a.key_block, 16) : 16;
  if (keys < 4) return std::nullopt;
  a = target.arithmetic(target.probe(fmt::format("seq=1x{} dim=1 scale=1 out=o,lse", keys)));
  const auto light = static_cast<double>(keys - 1);
  const double u = unit_roundoff(a.accumulator), u_weights = unit_roundoff(a.stored_weights);
  if (!narrower(a.stored_weights, a.accumulator) || a.normalised_before_storage || error_of_one(target) > 0) {
    return std::nullopt;
  }
  constexpr std::int64_t kRows = 64;
  Probe p = target.probe(fmt::format("seq={}x{} dim=1 scale=1 out=o,lse", kRows, keys));
  const auto score = [](std::int64_t i) { return -static_cast<double>(i + 1) / 32; };
  p.set_q([&](std::int64_t i, std::int64_t) { return score(i); });
  p.set_k([](std::int64_t j, std::int64_t) { return j == 0 ? 0.0 : 1.0; });
  p.run(target.backend);
  const double lse_u = narrower(accumulator_of(target.dtype), a.accumulator) ? unit_roundoff(DType::f32) : 0;
  int as_stored = 0, as_computed = 0;
  std::string shown;
  for (std::int64_t i = 0; i < kRows; ++i) {
    const double weight = std::exp(score(i)), stored = rounded_to(a.stored_weights, weight);
    const double computed_lse = std::log1p(light * weight), stored_lse = std::log1p(light * stored);
    const double others = 2 * u * a.exp_ulps + 2 * u * a.log_ulps * (computed_lse + a.lazy_threshold) + 32 * u +
                          lse_u * computed_lse + (a.base2 ? 8 * u * (1 + std::fabs(score(i))) : 0) +
                          (a.scale == ScalePlacement::split_root ? 6 * u : 0) +
                          (a.base2 && held_scores(a) != a.accumulator
                               ? a.score_stores * unit_roundoff(a.stored_scores) * std::fabs(score(i))
                               : 0);
    if (std::fabs(stored_lse - computed_lse) < 2.5 * (others + u * u_weights)) continue;
    shown = p.shown_lse(i);
    if (std::fabs(p.lse(i) - stored_lse) <= others) ++as_stored;
    if (std::fabs(p.lse(i) - computed_lse) <= others) ++as_computed;
  }
  if (as_stored + as_computed < 4) return std::nullopt;
  const bool stored = as_stored > as_computed;
  const auto name = [](bool of_stored) { return std::string(of_stored ? "true" : "false"); };
  return Answer{name(a.sum_of_stored), name(stored), stored == a.sum_of_stored ? Kind::holds : Kind::is_false, shown};
}

/// Where a weight is farthest from the exact one.
std::size_t farthest(const PairWeights& pairs) {
  std::size_t at = 0;
  const auto error = [&](std::size_t i) { return std::fabs((pairs.weight(i) - pairs.exact(i)) / pairs.exact(i)); };
  for (std::size_t i = 1; i < pairs.size(); ++i) {
    if (!(error(i) <= error(at))) at = i;
  }
  return at;
}

ProbeResult stored_weights(const ProbeTarget& target) {
  const Arithmetic a = target.arithmetic(target.probe("seq=2 dim=2 scale=1"));
  if (a.key_block == 1) return std::nullopt;  // either key may come first, and its weight be 1
  // Down to exp(-9) every type here has all of its bits.
  std::vector<PairWeights::Point> points;
  for (int i = 0; i < 144; ++i) points.push_back({0, -static_cast<double>(i + 1) / 16});
  const PairWeights pairs(target, points);
  const double one = error_of_one(target);
  const DType stated = held_weights(a);
  const auto told = [&](DType type) {
    double coarsest = 0;
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      // Quotients are predicted, and so with every error of their weights.
      const double predicted = 2 * (2 * a.exp_ulps + 8) * unit_roundoff(a.accumulator) + pairs.scores(i, a);
      coarsest = std::max(coarsest, pairs.resolution(i) + (a.normalised_before_storage ? predicted : 0));
    }
    return coarsest < unit_roundoff(type) / 8;
  };
  const auto looks_stored = [&](DType type) {
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      const long double e = pairs.exact(i);
      const double u = unit_roundoff(a.accumulator);
      if (a.normalised_before_storage) {
        // Both quotients are stored: what their difference would be, unless one lies too close to a tie.
        const auto heavy = static_cast<double>(1 / (1 + e)), light = static_cast<double>(e / (1 + e));
        const double slack = (2 * a.exp_ulps + 12) * u + pairs.scores(i, a);
        bool fits = false;
        for (double f : {-unit_roundoff(type), -slack, 0.0, slack, unit_roundoff(type)}) {
          for (double g : {-unit_roundoff(type), -slack, 0.0, slack, unit_roundoff(type)}) {
            const long double expected =
                rounded_to(type, light * (1 + f)) - pairs.subtracted(i) * rounded_to(type, heavy * (1 + g));
            fits = fits || std::fabs(pairs.difference(i) - expected) <=
                               4 * u * heavy + 2 * target.u_out() * std::fabs(pairs.difference(i));
          }
        }
        if (!fits) return false;
        continue;
      }
      const auto weight = static_cast<double>(pairs.weight(i)) * rounded_to(type, std::exp(one));
      const auto step = std::fabs(rounded_to(type, weight) - weight);
      if (!(step <= 2 * (pairs.resolution(i) + u) * weight)) return false;
    }
    return true;
  };
  DType observed = a.accumulator;
  bool seen = true;
  for (DType type : {DType::f32, DType::f16, DType::bf16}) {
    if (!narrower(type, a.accumulator)) continue;
    if (!told(type)) {
      seen = seen && type != stated;
      continue;
    }
    if (looks_stored(type)) observed = type;
  }
  if (observed == a.accumulator && narrower(stated, observed) && !seen) return std::nullopt;
  const Kind kind = observed == stated ? Kind::holds : narrower(observed, stated) ? Kind::is_false : Kind::too_wide;
  return Answer{std::string(name_of(stated)), std::string(name_of(observed)), kind, pairs.shown(farthest(pairs))};
}

}  // namespace attest::probes
