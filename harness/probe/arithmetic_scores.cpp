// Probes of the scores: how they are stored, in which base, and where the scale goes.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "harness/probe/arithmetic_probes.h"
#include "harness/probe/pair_weights.h"

namespace attest::probes {
namespace {

/// By how much the difference of two scores is off, beyond what everything but the scores explains: the largest, and
/// the output that shows it.
struct ScoreError {
  double beyond = 0;
  std::string shown;
};
ScoreError score_error(const PairWeights& pairs, const Arithmetic& stated) {
  const double e_exp = 2 * unit_roundoff(pairs.arithmetic().accumulator) * pairs.arithmetic().exp_ulps;
  ScoreError worst{0, pairs.shown(0)};
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const auto seen = static_cast<double>(std::log(pairs.weight(i)));
    const double error = std::fabs(seen - pairs.x(i));
    const double others = 2 * e_exp + 1.1 * pairs.rest(i) + pairs.scores(i, stated);
    const double beyond = std::isfinite(error) ? error - others : kInfinity;
    if (beyond > worst.beyond) worst = {beyond, pairs.shown(i)};
  }
  return worst;
}

/// Of everything but the scores, at its best.
double hidden_below(const PairWeights& pairs) {
  const double e_exp = 2 * unit_roundoff(pairs.arithmetic().accumulator) * pairs.arithmetic().exp_ulps;
  double least = kInfinity;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    least = std::min(least, 2 * e_exp + 1.1 * pairs.rest(i));
  }
  return least;
}

/// Whether scores near 4/u are rounded to a grid as coarse as the type's. With a mask, either the score that it takes
/// away again or the one that it makes.
enum class Stage { plain, before_bias, after_bias };
std::optional<bool> rounds_to(const ProbeTarget& target, DType type, Stage stage, std::string& shown) {
  constexpr std::int64_t kPoints = 64;
  const double large = 4 / unit_roundoff(type);
  const std::string mask = stage == Stage::plain ? "" : " mask=add:11QK:normal";
  Probe p = target.probe(fmt::format("seq={}x2 dim=2/2 scale=1{}", kPoints, mask));
  if (stage != Stage::plain && (refusal_of(target.backend, p.problem()) || large > largest_of(target.dtype))) {
    return std::nullopt;
  }
  const Arithmetic a = target.arithmetic(p);
  const double u = unit_roundoff(a.accumulator);
  const auto x = [](std::int64_t i) { return -static_cast<double>(i + 1) / 16; };
  const bool split = type == DType::f32;  // no factor too large for the storage type
  const double factor = split ? 0x1p13 : 0x1p5;
  p.set_q([&](std::int64_t i, std::int64_t d) {
    return d == 0 ? large / factor : stage == Stage::after_bias ? 0 : x(i);
  });
  p.set_k([&](std::int64_t j, std::int64_t d) { return d == 0 ? factor : static_cast<double>(j); });
  if (stage == Stage::before_bias) p.set_mask([&](std::int64_t, std::int64_t) { return -large; });
  if (stage == Stage::after_bias) p.set_mask([&](std::int64_t i, std::int64_t j) { return j == 0 ? 0 : x(i); });
  p.set_v([](std::int64_t j, std::int64_t c) { return j == c ? 1.0 : 0.0; });
  p.run(target.backend);
  const double noise = 4 * u * a.exp_ulps + 20 * u + 2 * target.u_out() +
                       (narrower(a.stored_weights, a.accumulator) ? 2.2 * unit_roundoff(a.stored_weights) : 0) +
                       (a.base2 || a.scale == ScalePlacement::split_root ? 24 * u * large : 0);
  if (noise > 0.2) return std::nullopt;
  double worst = 0;
  for (std::int64_t i = 0; i < kPoints; ++i) {
    const double seen = std::log(p.out(i, 1) / p.out(i, 0));
    const double off = std::isfinite(seen) ? std::fabs(seen - x(i)) : kInfinity;
    if (off > worst) shown = p.shown(i, 1);
    worst = std::max(worst, off);
  }
  return worst > 1.75 + noise;  // two roundings of a type three bits finer stay below
}

/// Weights e^-4 apart at most, for either probe of large scores.
std::vector<PairWeights::Point> large_scores(double whole, double step, double factor) {
  std::vector<PairWeights::Point> points;
  for (int i = 0; i < 96; ++i) {
    points.push_back({(whole - static_cast<double>(i % 47)) * factor, -step * static_cast<double>(1 + i % 4)});
  }
  return points;
}

/// Large scores that every statement but base 2 and a split scale leaves exact; three times as large they still are.
struct LargeScores {
  std::vector<PairWeights::Point> points;
  double factor = 1, largest = 0;
};
LargeScores exact_large_scores(const ProbeTarget& target, const Arithmetic& a) {
  const DType held = held_scores(a);
  LargeScores scores;
  double whole = 80;
  if (held == DType::f32 || held == DType::f64) {
    // 2^-6 over the accumulator's roundoff, as far as a product of two numbers of 16 bits gets there.
    scores.factor = target.dtype == DType::f16 ? 0x1p12 : held == DType::f64 ? 0x1p40 : 0x1p11;
    if (held == DType::f32 && a.accumulator == DType::f64) scores.factor = 0x1p11;
  } else if (held == DType::f16) {
    whole = 512;
    if (target.dtype == DType::bf16) whole = 80;
  }
  scores.points = large_scores(whole, 1, scores.factor);
  scores.largest = whole * scores.factor;
  return scores;
}

}  // namespace

ProbeResult stored_scores(const ProbeTarget& target) {
  const Arithmetic a = target.arithmetic(target.probe("seq=2 dim=2/2 scale=1 mask=add:11QK:normal"));
  if (a.no_maximum) return std::nullopt;  // whose weights overflow at scores as large as this asks for
  const DType stated = held_scores(a);
  DType observed = a.accumulator;
  std::string shown;
  bool seen = true;
  for (DType type : {DType::f32, DType::f16, DType::bf16}) {
    if (!narrower(type, a.accumulator)) continue;
    const std::optional<bool> rounds = rounds_to(target, type, Stage::plain, shown);
    if (!rounds && type == stated) seen = false;
    if (rounds && *rounds) observed = type;
  }
  int times = 0;
  if (observed != a.accumulator) {
    for (Stage stage : {Stage::before_bias, Stage::after_bias}) {
      if (rounds_to(target, observed, stage, shown).value_or(false)) ++times;
    }
    times = std::max(times, 1);
  }
  if (!seen) return std::nullopt;
  const int says = stated == a.accumulator ? 0 : a.score_stores;
  const auto text = [](DType type, int count) {
    return count == 0 ? "nowhere" : fmt::format("{}, {} times", name_of(type), count);
  };
  // Before the scale, after it, behind the cap and behind the bias: more stores than that change nothing.
  constexpr int kMostStores = 4;
  const Kind kind = narrower(observed, stated) || (observed == stated && times > says) ? Kind::is_false
                    : narrower(stated, observed) || says > kMostStores                 ? Kind::too_wide
                                                                                       : Kind::holds;
  return Answer{text(stated, says), text(observed, times), kind, shown};
}

ProbeResult base_two(const ProbeTarget& target) {
  const Arithmetic a = target.arithmetic(target.probe("seq=96x2 dim=3/96 scale=1"));
  if (a.no_maximum || rounds_maxima(a)) return std::nullopt;
  const LargeScores large = exact_large_scores(target, a);
  const PairWeights pairs(target, large.points, 1, large.factor);
  Arithmetic natural = a;
  natural.base2 = false;
  natural.scale = ScalePlacement::score;
  const ScoreError error = score_error(pairs, natural);
  const bool shown = error.beyond > 0;
  const double u = held_scores(a) == a.accumulator ? unit_roundoff(a.accumulator) : unit_roundoff(a.stored_scores);
  const bool seen = u * large.largest / 4 > hidden_below(pairs);
  if (!seen && !shown) return std::nullopt;
  const auto name = [](bool two) { return std::string(two ? "true" : "false"); };
  return Answer{name(a.base2), name(shown),
                shown == a.base2 ? Kind::holds
                : shown          ? Kind::is_false
                                 : Kind::too_wide,
                error.shown};
}

ProbeResult scale_placement(const ProbeTarget& target) {
  const Arithmetic a = target.arithmetic(target.probe("seq=96x2 dim=3/96 scale=3"));
  if (a.no_maximum || rounds_maxima(a)) return std::nullopt;
  const std::string stated(name_of(a.scale));
  if (a.base2) {
    // scale * log2(e) is beyond the range, scale * score is not.
    // Held in a type of more range neither overflows, in one of less both may.
    if (held_scores(a) != accumulator_of(target.dtype) || target.dtype == DType::f16) return std::nullopt;
    const bool is_double = target.dtype == DType::f64;
    const double factor = is_double ? 0x1p-511 : 0x1p-63;
    Probe p = target.probe(fmt::format("seq=2x2 dim=1/2 scale={}", is_double ? 1.6e308 : 3e38));
    const double unit = p.problem().call.scale_value() * factor * factor;
    p.set_q([&](std::int64_t i, std::int64_t) { return -factor * static_cast<double>(i + 1); });
    p.set_k([&](std::int64_t j, std::int64_t) { return factor * static_cast<double>(j); });
    p.set_v([](std::int64_t j, std::int64_t c) { return j == c ? 1.0 : 0.0; });
    p.run(target.backend);
    bool right = true;
    for (std::int64_t i = 0; i < 2; ++i) {  // more would be beneath the smallest weights of f16
      const double seen = std::log(p.out(i, 0) / p.out(i, 1));
      right = right && std::fabs(seen - unit * static_cast<double>(i + 1)) < 0.1 * unit;
    }
    const bool says_folded = a.scale == ScalePlacement::folded_log2e;
    return Answer{stated, right ? "not folded" : std::string(name_of(ScalePlacement::folded_log2e)),
                  right || says_folded ? Kind::holds : Kind::is_false, p.shown(1, 0)};
  }
  if (a.scale == ScalePlacement::folded_log2e) return Answer{stated, "base e", Kind::is_false};
  const LargeScores large = exact_large_scores(target, a);
  const PairWeights pairs(target, large.points, 3, large.factor);
  Arithmetic once = a;
  once.scale = ScalePlacement::score;
  const ScoreError error = score_error(pairs, once);
  const bool shown = error.beyond > 0, says = a.scale == ScalePlacement::split_root;
  const bool seen =
      held_scores(a) == a.accumulator && unit_roundoff(a.accumulator) * large.largest / 4 > hidden_below(pairs);
  if (!seen && !shown) return std::nullopt;
  return Answer{stated, std::string(name_of(shown ? ScalePlacement::split_root : ScalePlacement::score)),
                shown == says ? Kind::holds
                : shown       ? Kind::is_false
                              : Kind::too_wide,
                error.shown};
}

}  // namespace attest::probes
