// Probes of what is stated of products: the formats of their operands, their sums, and an approximated exp.
//
// One problem tells of one member: with a single key lse is the score and the output is the value. A member is
// confirmed where answers pass the bound of the same arithmetic without it.
#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "harness/comparison/expectation.h"
#include "harness/probe/arithmetic_probes.h"
#include "harness/verdict/restatement.h"

namespace attest::probes {

namespace {

/// One way in which the member may be stated.
struct Candidate {
  std::string name;
  Arithmetic arithmetic;
};

/// An element of a result: how far it is off, and how far it may be under each candidate.
struct Observation {
  double error;
  std::vector<double> bounds;
  bool in_lse;
  std::int64_t row, column;
};

/// From 0 to 1, of many bits.
double fraction(std::int64_t n) { return std::fmod(static_cast<double>(n + 1) * 0.6180339887498949, 1.0); }
/// Of two bits, which every format holds.
double coarse(std::int64_t n) { return 1 + static_cast<double>(n % 4) / 4; }
double one(std::int64_t, std::int64_t) { return 1; }

/// A query and a key of one feature, all keys 1: lse is the query.
Probe query_probe(const ProbeTarget& target) {
  Probe p = target.probe("seq=64x1 dim=1 scale=1 out=o,lse");
  p.set_q([](std::int64_t i, std::int64_t) { return 1 + fraction(i); });
  p.set_k(one);
  p.set_v(one);
  return p;
}

/// Queries that pick one feature of the key each: lse is that feature.
Probe key_probe(const ProbeTarget& target) {
  Probe p = target.probe("seq=64x1 dim=64 scale=1 out=o,lse");
  p.set_q([](std::int64_t i, std::int64_t d) { return i == d ? 1 : 0; });
  p.set_k([](std::int64_t, std::int64_t d) { return 1 + fraction(d); });
  p.set_v(one);
  return p;
}

/// One key: the output is its value.
Probe value_probe(const ProbeTarget& target) {
  Probe p = target.probe("seq=1x1 dim=1/64 scale=1 out=o,lse");
  p.set_q(zero);
  p.set_k(zero);
  p.set_v([](std::int64_t, std::int64_t c) { return 1 + fraction(c); });
  return p;
}

/// Two keys whose outputs are their weights. Scores have many bits, and operands few.
Probe weight_probe(const ProbeTarget& target) {
  Probe p = target.probe("seq=64x2 dim=4/2 scale=1 out=o,lse");
  p.set_q([](std::int64_t i, std::int64_t d) {
    return d == 0 ? coarse(i) : std::ldexp(coarse(i >> (2 * d)), static_cast<int>(-d - 1));
  });
  p.set_k(
      [](std::int64_t j, std::int64_t d) { return j == 0 ? 0 : -std::ldexp(coarse(3 * d), static_cast<int>(-2 * d)); });
  p.set_v([](std::int64_t j, std::int64_t c) { return j == c ? 1 : 0; });
  return p;
}

/// A large term and 63 small ones, numbers of every format.
double term(std::int64_t n, std::int64_t size) { return n == 0 ? 1 : std::ldexp(1.0, static_cast<int>(-size)); }

Probe score_sum_probe(const ProbeTarget& target) {
  Probe p = target.probe("seq=10x1 dim=64 scale=1 out=o,lse");
  p.set_q([](std::int64_t i, std::int64_t d) { return term(d, i); });
  p.set_k([](std::int64_t, std::int64_t d) { return term(d, 6); });
  p.set_v(one);
  return p;
}

Probe value_sum_probe(const ProbeTarget& target) {
  Probe p = target.probe("seq=1x64 dim=1/10 scale=1 out=o,lse");
  p.set_q(zero);
  p.set_k(zero);
  p.set_v([](std::int64_t j, std::int64_t c) { return j == 0 ? 64 : term(j, c); });
  return p;
}

Probe weight_sum_probe(const ProbeTarget& target) {
  Probe p = target.probe("seq=24x64 dim=1 scale=1 out=o,lse");
  p.set_q([](std::int64_t i, std::int64_t) { return std::ldexp(coarse(i), static_cast<int>(i / 4) - 3); });
  p.set_k([](std::int64_t j, std::int64_t) { return j == 0 ? 0.0 : -1.0; });
  p.set_v(one);
  return p;
}

std::vector<Observation> observations(const ProbeTarget& target, Probe& p, const std::vector<Candidate>& candidates) {
  std::vector<Producer> producers;
  for (const Candidate& candidate : candidates) producers.push_back({candidate.arithmetic, {}});
  p.run(target.backend);
  const Inputs inputs = p.inputs().views();
  const Expectation expected = expect(p.problem(), inputs, producers, 1, kInfinity);
  const auto columns = static_cast<std::size_t>(p.problem().call.value_dim);
  std::vector<Observation> list;
  const auto add = [&](TensorId result, std::size_t at, double found, std::int64_t row, std::int64_t column) {
    const double off = std::fabs(found - expected.of(result)[at]);
    Observation seen{std::isnan(off) ? kInfinity : off, {}, result == TensorId::lse, row, column};
    for (const Bounds& bounds : expected.bounds)
      seen.bounds.push_back(bounds.of(result)[at] + expected.own.of(result)[at]);
    list.push_back(std::move(seen));
  };
  for (std::size_t n = 0; n < expected.rows.size(); ++n) {
    const RowIndex& row = expected.rows[n];
    if (row.b != 0 || row.h != 0) continue;
    add(TensorId::lse, n, p.lse(row.i), row.i, 0);
    for (std::size_t c = 0; c < columns; ++c) {
      const auto column = static_cast<std::int64_t>(c);
      add(TensorId::out, n * columns + c, p.out(row.i, column), row.i, column);
    }
  }
  return list;
}

/// What the answers say of candidates that go from the finest to the coarsest, of which `stated` is what is declared
/// and the first is the default. `shows`: whether rounding as declared would be seen, where the bounds are apart.
ProbeResult judged(const ProbeTarget& target, Probe p, const std::vector<Candidate>& candidates, std::size_t stated,
                   bool shows) {
  const std::vector<Observation> list = observations(target, p, candidates);
  const auto fits = [&](std::size_t n) {
    return std::all_of(list.begin(), list.end(), [&](const Observation& o) { return !(o.error > o.bounds[n]); });
  };
  const auto farthest = [&](std::size_t n) {
    const auto ratio = [&](const Observation& o) { return o.error > o.bounds[n] ? o.error / o.bounds[n] : 0; };
    return *std::max_element(list.begin(), list.end(),
                             [&](const Observation& a, const Observation& b) { return ratio(a) < ratio(b); });
  };
  const auto shown = [&](const Observation& o) { return o.in_lse ? p.shown_lse(o.row) : p.shown(o.row, o.column); };
  const std::string& name = candidates[stated].name;
  if (!fits(stated)) {
    const Observation worst = farthest(stated);
    std::string observed = fmt::format("{:.3g} times the bound", worst.error / worst.bounds[stated]);
    for (std::size_t n = stated + 1; n < candidates.size(); ++n) {
      if (!fits(n)) continue;
      observed = candidates[n].name;
      break;
    }
    return Answer{name, observed, Kind::is_false, shown(worst)};
  }
  if (stated == 0) return std::nullopt;
  for (std::size_t n = 0; n < stated; ++n) {
    if (!fits(n)) continue;
    const auto apart = std::count_if(list.begin(), list.end(), [&](const Observation& o) {
      return std::isfinite(o.bounds[stated]) && o.bounds[stated] >= 6 * o.bounds[n];
    });
    if (!shows || apart < 8) return Answer{name, name, Kind::unseen};
    return Answer{name, candidates[n].name, Kind::too_wide, shown(list.front())};
  }
  return Answer{name, name, Kind::holds};
}

/// What is said of a member, beside its default.
std::string text_of(const char* member, const Arithmetic& a) {
  const std::vector<StatedField> own = stated_fields(a), plain = stated_fields(Arithmetic{});
  std::string text;
  for (std::size_t n = 0; n < own.size(); ++n) {
    if (!own[n].key.starts_with(member) || own[n] == plain[n]) continue;
    const std::string_view rest = own[n].key.substr(std::string_view(member).size());
    const std::string label = rest.empty() ? "" : std::string(rest.substr(1)) + "=";
    text += (text.empty() ? "" : " ") + label + own[n].value;
  }
  return text.empty() ? "default" : text;
}

Arithmetic stated_by(const ProbeTarget& target) { return target.arithmetic(target.probe("seq=4x8 dim=4")); }

/// What is left of an arithmetic where q, k and v are numbers of every format: their casts cost nothing, unless a
/// factor of the scale or of log2(e) comes before them, or they are numbers of steps.
Arithmetic without_casts(Arithmetic a) {
  if (a.base2 || states_steps(a) || a.scale != ScalePlacement::score) return a;
  a.query_operand = a.key_operand = a.value_operand = OperandFormat::exact;
  return a;
}

/// A member that has its default or another value.
ProbeResult either(const ProbeTarget& target, Probe (*make)(const ProbeTarget&), const char* name,
                   const std::function<void(Arithmetic&)>& reset) {
  Arithmetic a = stated_by(target), without = a;
  reset(without);
  if (a == without) return std::nullopt;
  return judged(target, make(target), {{"default", without}, {text_of(name, a), a}}, 1, false);
}

ProbeResult operand(const ProbeTarget& target, Probe (*make)(const ProbeTarget&), OperandFormat Rounding::*member,
                    OperandRounding Rounding::*rounding, const char* name) {
  const Arithmetic a = stated_by(target);
  // Formats of steps and of parts have no order.
  if (a.*rounding != OperandRounding() || a.*member > OperandFormat::e5m2) {
    return either(target, make, name, [&](Arithmetic& to) {
      to.*member = OperandFormat::exact;
      to.*rounding = {};
    });
  }
  const auto u = [](OperandFormat format) { return rounding_of(format, false).u; };
  std::vector<Candidate> list;
  std::size_t stated = 0;
  for (OperandFormat format :
       {OperandFormat::exact, OperandFormat::tf32, OperandFormat::bf16, OperandFormat::e4m3, OperandFormat::e5m2}) {
    if (u(format) == u(a.*member)) format = a.*member;  // f16 and tf32 differ in their ranges alone
    if (format == a.*member) stated = list.size();
    list.push_back({std::string(name_of(format)), without_casts(a)});
    list.back().arithmetic.*member = format;
  }
  // Data of as few bits aren't rounded.
  return judged(target, make(target), list, stated, 4 * target.u_out() <= u(a.*member));
}

/// The first token sees itself alone, and shares a step with larger ones, if at all: whether that is stated.
ProbeResult groups(const ProbeTarget& target, TensorId of, OperandRounding Rounding::*member, const char* name) {
  Arithmetic a = stated_by(target), alone = a;
  if ((a.*member).step != 0) return std::nullopt;
  (alone.*member).rows = 1;
  Probe p = target.probe("seq=64 dim=1/8 scale=1 causal out=o,lse");
  const auto numbers = [of](TensorId id) {
    return [same = id != of](std::int64_t n, std::int64_t d) {
      return same ? 1 : (1 + fraction(n + d)) * (n == 0 ? 1 : 64);
    };
  };
  p.set_q(numbers(TensorId::q));
  p.set_k(numbers(TensorId::k));
  p.set_v(numbers(TensorId::v));
  if (alone == a) return judged(target, std::move(p), {{text_of(name, a), a}}, 0, false);
  return judged(target, std::move(p), {{"default", alone}, {text_of(name, a), a}}, 1, false);
}

}  // namespace

ProbeResult query_operand(const ProbeTarget& target) {
  return operand(target, query_probe, &Rounding::query_operand, &Rounding::query_rounding, "query_operand");
}
ProbeResult key_operand(const ProbeTarget& target) {
  return operand(target, key_probe, &Rounding::key_operand, &Rounding::key_rounding, "key_operand");
}
ProbeResult value_operand(const ProbeTarget& target) {
  return operand(target, value_probe, &Rounding::value_operand, &Rounding::value_rounding, "value_operand");
}

ProbeResult query_rounding(const ProbeTarget& target) {
  return groups(target, TensorId::q, &Rounding::query_rounding, "query_rounding");
}
ProbeResult key_rounding(const ProbeTarget& target) {
  return groups(target, TensorId::k, &Rounding::key_rounding, "key_rounding");
}
ProbeResult value_rounding(const ProbeTarget& target) {
  return groups(target, TensorId::v, &Rounding::value_rounding, "value_rounding");
}
ProbeResult weight_rounding(const ProbeTarget& target) {
  if (stated_by(target).weight_rounding.step != 0) return std::nullopt;
  return either(target, weight_probe, "weight_rounding", [](Arithmetic& a) { a.weight_rounding.rows = 1; });
}

ProbeResult weight_operand(const ProbeTarget& target) {
  const Arithmetic a = stated_by(target);
  if (narrower(a.stored_weights, a.accumulator)) return std::nullopt;  // they are rounded there
  if (a.weight_rounding != OperandRounding() || a.weight_operand > OperandFormat::u8) {
    return either(target, weight_probe, "weight_operand", [](Arithmetic& to) {
      to.weight_operand = OperandFormat::exact;
      to.weight_rounding = {};
      to.weight_factor = 1;
      to.sum_of_stored = false;
    });
  }
  struct Way {
    OperandFormat format;
    double factor;
  };
  std::vector<Candidate> list;
  std::size_t stated = 0;
  bool found = false;
  const auto add = [&](const Way& way) {
    list.push_back({std::string(name_of(way.format)), a});
    list.back().arithmetic.weight_operand = way.format;
    list.back().arithmetic.weight_factor = way.factor;
    if (way.format == OperandFormat::exact || way.format == OperandFormat::tf32 || way.format == OperandFormat::bf16)
      list.back().arithmetic.sum_of_stored = a.sum_of_stored && way.format != OperandFormat::exact;
  };
  const auto rank = [](OperandFormat format) {
    const FormatRounding rounding = rounding_of(format, false);
    return rounding.u > 0 ? rounding.u : 4 * rounding.eta / rounding.largest;
  };
  for (const Way& way : {Way{OperandFormat::exact, 1},
                         {OperandFormat::tf32, 1},
                         {OperandFormat::bf16, 1},
                         {OperandFormat::e4m3, 256},
                         {OperandFormat::e5m2, 1}}) {
    if (!found && rank(way.format) >= rank(a.weight_operand)) {
      stated = list.size();
      found = true;
      add({a.weight_operand, a.weight_factor});
      if (rank(way.format) == rank(a.weight_operand)) continue;
    }
    add(way);
  }
  if (!found) {
    stated = list.size();
    add({a.weight_operand, a.weight_factor});
  }
  return judged(target, weight_probe(target), list, stated, false);
}

namespace {

ProbeResult sum_of(const ProbeTarget& target, Probe (*make)(const ProbeTarget&), Sum Rounding::*member,
                   const char* name) {
  const Arithmetic a = stated_by(target);
  std::vector<Candidate> list;
  std::size_t stated = 0;
  const auto add = [&](const std::string& text, const Sum& sum) {
    list.push_back({text, without_casts(a)});
    list.back().arithmetic.*member = sum;
  };
  add("default", {});
  for (const SumFormat format : {SumFormat::f16, SumFormat::bf16}) {
    const Sum plain{.format = format};
    const bool coarser = format == SumFormat::f16 && a.*member == Sum{.format = SumFormat::bf16};
    if (stated == 0 && a.*member != Sum() && !coarser) {
      stated = list.size();
      add(text_of(name, a), a.*member);
      if (a.*member == plain) continue;
    }
    add(std::string(name_of(format)), plain);
  }
  // The last step of such a sum ends on a number of its format, however it is made. Sums of other terms may be exact.
  const Sum& own = a.*member;
  const bool ends_there = own == Sum{.format = SumFormat::f16} || own == Sum{.format = SumFormat::bf16};
  return judged(target, make(target), list, stated, ends_there && member == &Rounding::score_sum);
}

}  // namespace

ProbeResult score_sum(const ProbeTarget& target) {
  return sum_of(target, score_sum_probe, &Rounding::score_sum, "score_sum");
}
ProbeResult value_sum(const ProbeTarget& target) {
  return sum_of(target, value_sum_probe, &Rounding::value_sum, "value_sum");
}
ProbeResult weight_sum(const ProbeTarget& target) {
  return sum_of(target, weight_sum_probe, &Rounding::weight_sum, "weight_sum");
}

ProbeResult score_roundings(const ProbeTarget& target) {
  return either(target, query_probe, "score_roundings", [](Arithmetic& a) { a.score_roundings = 0; });
}
ProbeResult output_roundings(const ProbeTarget& target) {
  return either(target, value_probe, "output_roundings", [](Arithmetic& a) { a.output_roundings = 0; });
}
ProbeResult weight_factor(const ProbeTarget& target) {
  return either(target, weight_probe, "weight_factor", [](Arithmetic& a) { a.weight_factor = 1; });
}
ProbeResult exp_absolute(const ProbeTarget& target) {
  return either(target, weight_probe, "exp_absolute", [](Arithmetic& a) { a.exp_absolute = 0; });
}
ProbeResult exp_argument(const ProbeTarget& target) {
  return either(target, weight_probe, "exp_argument", [](Arithmetic& a) { a.exp_argument = OperandFormat::exact; });
}
ProbeResult rescale_ulps(const ProbeTarget& target) {
  return either(target, weight_sum_probe, "rescale_ulps", [](Arithmetic& a) { a.rescale_ulps = -1; });
}

}  // namespace attest::probes
