// Probes of the online softmax (its blocks, a maximum that lags), of underflow, and of chunks of linear attention.
#include <algorithm>
#include <cmath>

#include "harness/probe/arithmetic_probes.h"

namespace attest::probes {
namespace {

/// How far weights reach down in the type that P is held in, and a value that lifts the smallest into results. A result
/// type of less range hides them.
struct Reach {
  double step;             ///< exp(-step) is a weight, exp(-2 * step) is none
  double lowest, highest;  ///< scores around the smallest weight
  double value;
};
std::optional<Reach> reach_of(const ProbeTarget& target, const Arithmetic& a) {
  const DType held = held_weights(a);
  // Beyond what a maximum may lag by there must still be weights.
  const double most = held == DType::f16 ? 9 : held == DType::f64 ? 700 : 80;
  if (a.lazy_threshold + 1 > most) return std::nullopt;
  if (held == DType::f16) {
    return Reach{std::max(9.0, a.lazy_threshold + 1), -24, -8, target.dtype == DType::f16 ? 0x1p15 : 0x1p20};
  }
  if (target.dtype == DType::f16) return std::nullopt;
  if (held != DType::f64) return Reach{std::max(60.0, a.lazy_threshold + 1), -108, -80, 0x1p100};
  if (target.dtype == DType::f64) return Reach{std::max(700.0, a.lazy_threshold + 1), -750, -700, 0x1p1000};
  return std::nullopt;
}

/// How far a weight may be off, in nats, where scores are as large as this.
double tolerance(const Arithmetic& a, double score) {
  const double stores = held_scores(a) == a.accumulator ? 0 : a.score_stores * unit_roundoff(a.stored_scores);
  return 0.5 + 3 * stores * score;
}

/// From which end the steps of an online softmax walk, as far as answers tell, and how many keys they take.
struct Walk {
  bool forwards = false, backwards = false;  ///< both: states of blocks are merged
  std::int64_t keys = 0;                     ///< of a step; 0: no maximum ever moves
  std::string shown = {};
};

/// Scores of a row that tell whether the maximum moves between two places: key `light`, which alone has a value, would
/// have a weight that no single exp could give.
struct Places {
  std::int64_t light, step, top;  ///< keys with scores 0, `step` and twice as much; all others lie below
};

class Moves {
 public:
  Moves(const ProbeTarget& target, const Reach& reach, std::int64_t keys)
      : target_(target),
        keys_(keys),
        step_(rounded_to(DType::bf16, reach.step)),
        value_(reach.value),
        probe_(target.probe(fmt::format("seq=1x{} dim=1 scale=1", keys))) {
    probe_.set_q([](std::int64_t, std::int64_t) { return 1.0; });
  }

  bool at(const Places& at) {
    probe_.set_k([&](std::int64_t j, std::int64_t) {
      return j == at.light ? 0 : j == at.step ? step_ : j == at.top ? 2 * step_ : -step_;
    });
    probe_.set_v([&](std::int64_t j, std::int64_t) { return j == at.light ? value_ : 0; });
    probe_.run(target_.backend);
    // An exp that is clamped gives a weight, too, but not this one.
    const double near = std::min(tolerance(target_.arithmetic(probe_), 2 * step_), step_ / 4);
    const bool moved = std::fabs(std::log(probe_.out(0, 0)) - std::log(value_) + 2 * step_) < near;
    (moved ? moved_ : still_) = probe_.shown(0, 0);
    return moved;
  }

  /// The same, counted from the last key on when `backwards`.
  bool counted(bool backwards, std::int64_t light, std::int64_t step, std::int64_t top) {
    const auto place = [&](std::int64_t j) { return backwards ? keys_ - 1 - j : j; };
    return at({place(light), place(step), place(top)});
  }

  /// Keys from key `first` on that are taken at once, or two: one can't be told from two.
  std::int64_t step_from(bool backwards, std::int64_t first) {
    std::int64_t low = first + 1, high = keys_ - 1;  // no move up to low; one before high, if any
    if (high <= low || !counted(backwards, first, first + 1, high)) return 0;
    while (high - low > 1) {
      const std::int64_t middle = low + (high - low) / 2;
      (counted(backwards, first, first + 1, middle) ? high : low) = middle;
    }
    return high - first;
  }

  std::int64_t keys() const { return keys_; }
  const std::string& moved() const { return moved_; }
  const std::string& still() const { return still_; }

 private:
  const ProbeTarget& target_;
  std::int64_t keys_;
  double step_, value_;
  Probe probe_;
  std::string moved_, still_;
};

/// The first step may be shorter where the length is no multiple of it; the one behind it isn't.
Walk walk_of(Moves& moves) {
  Walk walk;
  walk.forwards = moves.counted(false, 0, 1, moves.keys() - 1);
  walk.backwards = moves.counted(true, 0, 1, moves.keys() - 1);
  if (!walk.forwards && !walk.backwards) {
    walk.shown = moves.still();
    return walk;
  }
  const std::int64_t first = moves.step_from(!walk.forwards, 0);
  walk.keys = std::max(first, moves.step_from(!walk.forwards, first));
  walk.shown = moves.moved();
  return walk;
}

/// Whether the maximum moves somewhere among so many neighbours, whatever the order in which they are taken.
bool moves_within(Moves& moves, std::int64_t window) {
  window = std::min(window, moves.keys());
  if (window < 3) return false;
  constexpr std::uint64_t kTries = 96;
  std::uint64_t word = 1;
  const auto below = [&](std::int64_t n) {
    word = word * 6364136223846793005U + 1442695040888963407U;
    return static_cast<std::int64_t>((word >> 33) % static_cast<std::uint64_t>(n));
  };
  for (std::uint64_t n = 0; n < kTries; ++n) {
    const std::int64_t start = below(moves.keys() - window + 1);
    const Places at{start + below(window), start + below(window), start + below(window)};
    if (at.light != at.step && at.light != at.top && at.step != at.top && moves.at(at)) return true;
  }
  return false;
}

std::string block_text(std::int64_t block) {
  return block > 0 ? fmt::format("{} keys", block) : std::string("one pass");
}

/// The lowest score at which a weight is still right, of a key in the last of three blocks that the walk takes; the
/// maximum is 0 in the first and `rise` from the middle of the second on.
double lowest_right(const ProbeTarget& target, const Reach& reach, std::int64_t block, bool backwards, double rise,
                    std::string& shown) {
  constexpr std::int64_t kRows = 128;
  Probe p = target.probe(fmt::format("seq={}x{} dim=2/1 scale=1", kRows, 3 * block));
  const auto score = [&](std::int64_t i) {
    return rounded_to(DType::bf16, reach.lowest + (reach.highest - reach.lowest) * static_cast<double>(i) / kRows);
  };
  const auto place = [&](std::int64_t j) { return backwards ? 3 * block - 1 - j : j; };
  p.set_q([&](std::int64_t i, std::int64_t d) { return d == 0 ? 1.0 : score(i); });
  p.set_k([&](std::int64_t at, std::int64_t d) {
    const std::int64_t j = place(at);
    const bool first = j == 0, middle = j == block + block / 2, last = j == 3 * block - 1;
    if (d == 1) return last ? 1.0 : 0.0;
    return first || last ? 0.0 : middle ? rise : -40.0;
  });
  p.set_v([&](std::int64_t j, std::int64_t) { return place(j) == 3 * block - 1 ? reach.value : 0; });
  p.run(target.backend);
  double lowest = kInfinity;
  for (std::int64_t i = kRows - 1; i >= 0; --i) {
    const double expected = score(i) - std::log1p(std::exp(rise));
    if (!(std::fabs(std::log(p.out(i, 0)) - std::log(reach.value) - expected) < 1)) break;
    lowest = score(i);
    shown = p.shown(i, 0);
  }
  return lowest;
}

}  // namespace

ProbeResult key_block(const ProbeTarget& target) {
  const std::int64_t guess = target.arithmetic(target.probe("seq=1x2 dim=1 scale=1")).key_block;
  // A multiple, so that steps counted from the last key begin where those from the first do.
  std::int64_t keys = guess > 0 ? std::max<std::int64_t>(8 * guess, 32) : 1026;
  const auto of_length = [&] { return target.arithmetic(target.probe(fmt::format("seq=1x{} dim=1 scale=1", keys))); };
  Arithmetic a = of_length();
  for (int tries = 0; tries < 3 && keys < 8 * a.key_block; ++tries) {
    keys = 8 * a.key_block;
    a = of_length();
  }
  const std::optional<Reach> reach = reach_of(target, a);
  // Weights that are divided before their product are computed with the last maximum.
  if (!reach || a.normalised_before_storage || a.no_maximum) return std::nullopt;
  const std::int64_t stated = a.key_block;
  const auto most = static_cast<std::int64_t>(kSlack) * std::max<std::int64_t>(stated, 2);
  Moves moves(target, *reach, keys);
  const Walk walk = walk_of(moves);
  const bool narrow = walk.keys > 0 && (stated == 0 || walk.keys < stated);
  bool wide = stated > 0 && (walk.keys == 0 || walk.keys > most);
  // Keys that are dealt out to states, every so many-th to one, move no maximum where neighbours are looked at.
  if (wide && moves_within(moves, most)) wide = false;
  const Kind kind = narrow ? Kind::is_false : wide ? Kind::too_wide : Kind::holds;
  return Answer{block_text(stated), block_text(kind == Kind::holds && walk.keys == 0 ? stated : walk.keys), kind,
                walk.shown};
}

ProbeResult lazy_threshold(const ProbeTarget& target) {
  const Arithmetic a = target.arithmetic(target.probe("seq=128x1024 dim=2/1 scale=1"));
  const auto text = [](double nats) { return nats > 0 ? fmt::format("{:g} nats", nats) : std::string("never"); };
  if (a.key_block == 0) {
    if (a.lazy_threshold > 0) return Answer{text(a.lazy_threshold), "one pass", Kind::too_wide};
    return std::nullopt;
  }
  const std::optional<Reach> reach = reach_of(target, a);
  if (!reach || a.normalised_before_storage) return std::nullopt;
  if (tolerance(a, -reach->lowest) > 1) return std::nullopt;  // scores too coarse
  Moves moves(target, *reach, std::max<std::int64_t>(8 * a.key_block, 32));
  if (target.arithmetic(target.probe(fmt::format("seq=1x{} dim=1 scale=1", moves.keys()))) != a) return std::nullopt;
  const Walk walk = walk_of(moves);
  // States that are merged have no running maximum, and one that never moves is another statement's affair.
  if (walk.forwards == walk.backwards || walk.keys != std::max<std::int64_t>(a.key_block, 2)) return std::nullopt;
  std::string shown;
  const double level = lowest_right(target, *reach, a.key_block, walk.backwards, 0, shown);
  if (level == kInfinity) return std::nullopt;
  // Scores of 8 bits stand half a nat apart where it matters.
  double lags = 0, moved = kInfinity;
  for (double rise : {2.0, 4.0, 6.0, 8.0, 12.0, 16.0}) {
    if (held_weights(a) == DType::f16 && rise > 10) break;  // weights beyond the range
    const double shift = lowest_right(target, *reach, a.key_block, walk.backwards, rise, shown) - level;
    if (shift < rise / 2) {
      lags = rise;
    } else {
      moved = std::min(moved, rise);
    }
  }
  const Kind kind = lags > a.lazy_threshold                 ? Kind::is_false
                    : moved * kSlack / 2 < a.lazy_threshold ? Kind::too_wide
                                                            : Kind::holds;
  return Answer{text(a.lazy_threshold), lags > 0 ? "at least " + text(lags) : text(0), kind, shown};
}

ProbeResult flush_to_zero(const ProbeTarget& target) {
  if (target.dtype == DType::f16) return std::nullopt;  // its smallest numbers are normal in any accumulator
  const bool is_double = target.dtype == DType::f64;
  // A subnormal value with weight 1, and a value of 1 with a subnormal weight.
  Probe p = target.probe("seq=2 dim=1 scale=1");
  const double tiny = is_double ? 0x1p-1060 : 0x1p-130, low = is_double ? -730 : -91;
  p.set_q([&](std::int64_t i, std::int64_t) { return i == 0 ? 0.0 : low; });
  p.set_k([](std::int64_t j, std::int64_t) { return static_cast<double>(j); });
  p.set_v([&](std::int64_t j, std::int64_t) { return j == 0 ? 0.0 : 1.0; });
  p.run(target.backend);
  const Arithmetic a = target.arithmetic(p);
  const std::string of_weight = p.shown(1, 0);
  const bool weight_kept =
      p.out(1, 0) != 0 || held_weights(a) == DType::f16 || (is_double && held_weights(a) != DType::f64);
  p.set_v([&](std::int64_t, std::int64_t) { return tiny; });
  p.run(target.backend);
  const bool kept = weight_kept && p.out(0, 0) != 0, stated = a.flush_to_zero;
  // "May happen" is true of one that never does: whether it happens may be the device's or the compiler's choice.
  return Answer{stated ? "true" : "false", kept ? "false" : "true", kept || stated ? Kind::holds : Kind::is_false,
                weight_kept ? p.shown(0, 0) : of_weight};
}

/// Token 0 puts a large number and its negative into the state, token 1 adds a one that vanishes beside it. A reader
/// sees the one as long as token 1 has not entered the state: to the end of its chunk.
ProbeResult state_chunk(const ProbeTarget& target) {
  const std::int64_t guess = target.arithmetic(target.probe("op=linear seq=2 dim=2 scale=1")).state_chunk;
  const std::int64_t tokens = guess > 0 ? 2 * guess : 256;
  Probe p = target.probe(fmt::format("op=linear seq={} dim=2 scale=1", tokens));
  const Arithmetic a = target.arithmetic(p);
  if (a.accumulator == DType::f64 && target.dtype == DType::f16) return std::nullopt;  // nothing large enough
  const double root = a.accumulator == DType::f64 ? 0x1p28 : 0x1p14;
  p.set_q([](std::int64_t, std::int64_t) { return 1.0; });
  p.set_k([&](std::int64_t t, std::int64_t d) {
    return t == 0 ? (d == 0 ? root : -root) : t == 1 && d == 0 ? 1.0 : 0.0;
  });
  p.set_v([&](std::int64_t t, std::int64_t) { return t == 0 ? root : t == 1 ? 1.0 : 0.0; });
  p.run(target.backend);
  std::int64_t end = 1;
  while (end < tokens && p.out(end, 0) == 1) ++end;
  const auto text = [&](std::int64_t chunk) {
    return chunk <= 1 ? std::string("one by one")
                      : fmt::format("{} tokens{}", chunk, chunk == tokens ? " or more" : "");
  };
  // A chunk of one token looks like one of two.
  const bool holds = end == std::max<std::int64_t>(a.state_chunk, a.state_chunk == 0 ? 1 : 2);
  return Answer{text(a.state_chunk), text(end),
                holds      ? Kind::holds
                : end == 1 ? Kind::too_wide
                           : Kind::is_false,
                p.shown(std::min(end, tokens - 1), 0)};
}

}  // namespace attest::probes
