// Probes of the online softmax (its blocks, a maximum that lags), of underflow, and of chunks of linear attention.
#include <algorithm>
#include <cmath>

#include "harness/probe/arithmetic_probes.h"

namespace attest::probes {
namespace {

using Kind = Answer::Kind;

/// How far weights reach down in the type that P is held in, and a value that lifts the smallest into results. A result
/// type of less range hides them.
struct Reach {
  double step;             ///< exp(-step) is a weight, exp(-2 * step) is none
  double lowest, highest;  ///< scores around the smallest weight
  double value;
};
std::optional<Reach> reach_of(const Asked& asked, const Arithmetic& a) {
  const DType held = held_weights(a);
  if (held == DType::f16) {
    return Reach{std::max(9.0, a.lazy_threshold + 1), -24, -8, asked.dtype == DType::f16 ? 0x1p15 : 0x1p20};
  }
  if (asked.dtype == DType::f16) return std::nullopt;
  if (held != DType::f64) return Reach{std::max(60.0, a.lazy_threshold + 1), -108, -80, 0x1p100};
  if (asked.dtype == DType::f64) return Reach{std::max(700.0, a.lazy_threshold + 1), -750, -700, 0x1p1000};
  return std::nullopt;
}

/// How far a weight may be off, in nats, where scores are as large as this.
double tolerance(const Arithmetic& a, double score) {
  const double stores = held_scores(a) == a.accumulator ? 0 : a.score_stores * unit_roundoff(a.stored_scores);
  return 0.5 + 3 * stores * score;
}

/// Whether the running maximum moves between key 1 and key j: key 0 has a weight that no single exp could give.
bool moves_before(const Asked& asked, const Reach& reach, std::int64_t keys, std::int64_t j) {
  Probe p = asked.probe(fmt::format("seq=1x{} dim=1 scale=1", keys));
  const double step = rounded_to(DType::bf16, reach.step);
  p.set_q([](std::int64_t, std::int64_t) { return 1.0; });
  p.set_k([&](std::int64_t at, std::int64_t) { return at == 0 ? 0 : at == 1 ? step : at == j ? 2 * step : -step; });
  p.set_v([&](std::int64_t at, std::int64_t) { return at > 0 ? 0 : reach.value; });
  p.run(asked.backend);
  // An exp that is clamped gives a weight, too, but not this one.
  const double near = std::min(tolerance(asked.arithmetic(p), 2 * step), step / 4);
  return std::fabs(std::log(p.out(0, 0)) - std::log(reach.value) + 2 * step) < near;
}

std::string block_text(std::int64_t block) {
  return block > 0 ? fmt::format("{} keys", block) : std::string("one pass");
}

/// The lowest score at which a weight is still right, of a key in the last of three blocks; the maximum is 0 in the
/// first and `rise` from the middle of the second on.
double lowest_right(const Asked& asked, const Reach& reach, std::int64_t block, double rise) {
  constexpr std::int64_t kRows = 128;
  Probe p = asked.probe(fmt::format("seq={}x{} dim=2/1 scale=1", kRows, 3 * block));
  const auto score = [&](std::int64_t i) {
    return rounded_to(DType::bf16, reach.lowest + (reach.highest - reach.lowest) * static_cast<double>(i) / kRows);
  };
  p.set_q([&](std::int64_t i, std::int64_t d) { return d == 0 ? 1.0 : score(i); });
  p.set_k([&](std::int64_t j, std::int64_t d) {
    const bool first = j == 0, middle = j == block + block / 2, last = j == 3 * block - 1;
    if (d == 1) return last ? 1.0 : 0.0;
    return first || last ? 0.0 : middle ? rise : -40.0;
  });
  p.set_v([&](std::int64_t j, std::int64_t) { return j == 3 * block - 1 ? reach.value : 0; });
  p.run(asked.backend);
  double lowest = kInfinity;
  for (std::int64_t i = kRows - 1; i >= 0; --i) {
    const double expected = score(i) - std::log1p(std::exp(rise));
    if (!(std::fabs(std::log(p.out(i, 0)) - std::log(reach.value) - expected) < 1)) break;
    lowest = score(i);
  }
  return lowest;
}

}  // namespace

Found key_block(const Asked& asked) {
  const std::int64_t guess = asked.arithmetic(asked.probe("seq=1x2 dim=1 scale=1")).key_block;
  const std::int64_t keys = guess > 0 ? 2 * guess + 2 : 1026;
  const Arithmetic a = asked.arithmetic(asked.probe(fmt::format("seq=1x{} dim=1 scale=1", keys)));
  const std::optional<Reach> reach = reach_of(asked, a);
  // Weights that are divided before their product are computed with the last maximum.
  if (!reach || a.normalised_before_storage) return std::nullopt;
  const std::int64_t stated = a.key_block;
  std::int64_t low = 1, high = keys - 1;  // no move up to low; one before high, if any
  if (!moves_before(asked, *reach, keys, high)) {
    return Answer{block_text(stated), "one pass", stated > 0 ? Kind::too_wide : Kind::holds};
  }
  while (high - low > 1) {
    const std::int64_t middle = (low + high) / 2;
    (moves_before(asked, *reach, keys, middle) ? high : low) = middle;
  }
  // A block of one key can't be told from one of two: key 1 is where the maximum first rises.
  const bool narrow = stated == 0 || high < stated;
  const bool wide = static_cast<double>(high) > kSlack * static_cast<double>(std::max<std::int64_t>(stated, 2));
  return Answer{block_text(stated), block_text(high), narrow ? Kind::is_false : wide ? Kind::too_wide : Kind::holds};
}

Found lazy_threshold(const Asked& asked) {
  const Arithmetic a = asked.arithmetic(asked.probe("seq=128x1024 dim=2/1 scale=1"));
  const auto text = [](double nats) { return nats > 0 ? fmt::format("{:g} nats", nats) : std::string("never"); };
  if (a.key_block == 0) {
    if (a.lazy_threshold > 0) return Answer{text(a.lazy_threshold), "one pass", Kind::too_wide};
    return std::nullopt;
  }
  const std::optional<Reach> reach = reach_of(asked, a);
  if (!reach || a.normalised_before_storage) return std::nullopt;
  if (tolerance(a, -reach->lowest) > 1) return std::nullopt;  // scores too coarse
  const double level = lowest_right(asked, *reach, a.key_block, 0);
  if (level == kInfinity) return std::nullopt;
  // Scores of 8 bits stand half a nat apart where it matters.
  double lags = 0, moves = kInfinity;
  for (double rise : {2.0, 4.0, 6.0, 8.0, 12.0, 16.0}) {
    if (held_weights(a) == DType::f16 && rise > 10) break;  // weights beyond the range
    const double shift = lowest_right(asked, *reach, a.key_block, rise) - level;
    if (shift < rise / 2) {
      lags = rise;
    } else {
      moves = std::min(moves, rise);
    }
  }
  const Kind kind = lags > a.lazy_threshold                 ? Kind::is_false
                    : moves * kSlack / 2 < a.lazy_threshold ? Kind::too_wide
                                                            : Kind::holds;
  return Answer{text(a.lazy_threshold), lags > 0 ? "at least " + text(lags) : text(0), kind};
}

Found flush_to_zero(const Asked& asked) {
  if (asked.dtype == DType::f16) return std::nullopt;  // its smallest numbers are normal in any accumulator
  const bool is_double = asked.dtype == DType::f64;
  // A subnormal value with weight 1, and a value of 1 with a subnormal weight.
  Probe p = asked.probe("seq=2 dim=1 scale=1");
  const double tiny = is_double ? 0x1p-1060 : 0x1p-130, low = is_double ? -730 : -91;
  p.set_q([&](std::int64_t i, std::int64_t) { return i == 0 ? 0.0 : low; });
  p.set_k([](std::int64_t j, std::int64_t) { return static_cast<double>(j); });
  p.set_v([&](std::int64_t j, std::int64_t) { return j == 0 ? 0.0 : 1.0; });
  p.run(asked.backend);
  const Arithmetic a = asked.arithmetic(p);
  const bool weight_kept =
      p.out(1, 0) != 0 || held_weights(a) == DType::f16 || (is_double && held_weights(a) != DType::f64);
  p.set_v([&](std::int64_t, std::int64_t) { return tiny; });
  p.run(asked.backend);
  const bool kept = weight_kept && p.out(0, 0) != 0, stated = a.flush_to_zero;
  // "May happen" is true of one that never does: whether it happens may be the device's or the compiler's choice.
  return Answer{stated ? "may happen" : "never", kept ? "never" : "happens",
                kept || stated ? Kind::holds : Kind::is_false};
}

/// Token 0 puts a large number and its negative into the state, token 1 adds a one that vanishes beside it. A reader
/// sees the one as long as token 1 has not entered the state: to the end of its chunk.
Found state_chunk(const Asked& asked) {
  const std::int64_t guess = asked.arithmetic(asked.probe("op=linear seq=2 dim=2 scale=1")).state_chunk;
  const std::int64_t tokens = guess > 0 ? 2 * guess : 256;
  Probe p = asked.probe(fmt::format("op=linear seq={} dim=2 scale=1", tokens));
  const Arithmetic a = asked.arithmetic(p);
  if (a.accumulator == DType::f64 && asked.dtype == DType::f16) return std::nullopt;  // nothing large enough
  const double root = a.accumulator == DType::f64 ? 0x1p28 : 0x1p14;
  p.set_q([](std::int64_t, std::int64_t) { return 1.0; });
  p.set_k([&](std::int64_t t, std::int64_t d) {
    return t == 0 ? (d == 0 ? root : -root) : t == 1 && d == 0 ? 1.0 : 0.0;
  });
  p.set_v([&](std::int64_t t, std::int64_t) { return t == 0 ? root : t == 1 ? 1.0 : 0.0; });
  p.run(asked.backend);
  std::int64_t end = 1;
  while (end < tokens && p.out(end, 0) == 1) ++end;
  const auto text = [&](std::int64_t chunk) {
    return chunk <= 1 ? std::string("one by one")
                      : fmt::format("{} tokens{}", chunk, chunk == tokens ? " or more" : "");
  };
  // A chunk of one token looks like one of two.
  const bool holds = end == std::max<std::int64_t>(a.state_chunk, a.state_chunk == 0 ? 1 : 2);
  return Answer{text(a.state_chunk), text(end), holds ? Kind::holds : end == 1 ? Kind::too_wide : Kind::is_false};
}

}  // namespace attest::probes
