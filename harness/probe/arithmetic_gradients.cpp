// Statements about gradients. A backward pass is given what its forward one saved: a wrong lse or o shows who reads it.
#include <array>
#include <cmath>
#include <vector>

#include "harness/probe/arithmetic_probes.h"

namespace attest::probes {
namespace {

std::string shown(const Probe& p, TensorId id) {
  return fmt::format("{}[0,0,0,0] = {:.9g} of \"{}\"", name_of(id), p.gradient(id, 0, 0), print_case(p.problem()));
}

/// Which of two things a result shows; nothing where it is neither.
ProbeResult either(bool stated, double got, double if_true, double if_false, std::string where) {
  const double allowed = 0.25 * std::fabs(if_true - if_false);
  const bool is_true = std::fabs(got - if_true) < allowed, is_false = std::fabs(got - if_false) < allowed;
  if (!is_true && !is_false) return std::nullopt;
  const auto text = [](bool value) { return std::string(value ? "true" : "false"); };
  return Answer{text(stated), text(is_true), is_true == stated ? Kind::holds : Kind::is_false, std::move(where)};
}

/// "dq.dtype=f32" where the storage type would hide digits of the accumulator.
std::string in_accumulator(const ProbeTarget& target, TensorId result) {
  return size_of(target.dtype) < 4 ? " " + std::string(name_of(result)) + ".dtype=f32" : "";
}

/// What a type says that holds 1 + 2^-n for the n below `lost` and not for `lost`.
std::string type_of_digits(int lost) {
  switch (lost) {
    case 9: return "bf16";
    case 12: return "f16";
    default: return "the accumulator's";
  }
}

/// `sum_of` gives 1 + 2^-n as it comes back for n: the first of 9 and 12 that is lost tells the type.
template <class Sum>
ProbeResult digits_of(DType stated, DType accumulator, const Sum& sum_of) {
  const DType held = narrower(stated, accumulator) ? stated : accumulator;
  const double u = unit_roundoff(held);
  for (const int n : {9, 12}) {
    const auto [sum, where] = sum_of(n);
    const double digit = (sum - 1) * std::ldexp(1.0, n);
    const bool kept = std::fabs(digit - 1) < 0.25, lost = std::fabs(digit) < 0.25;
    if (!kept && !lost) return std::nullopt;
    const bool keeps = std::ldexp(1.0, -n) > u;
    if (lost && keeps) return Answer{std::string(name_of(held)), type_of_digits(n), Kind::is_false, where};
    if (kept && !keeps) return Answer{std::string(name_of(held)), "more digits", Kind::too_wide, where};
    if (lost) break;
  }
  return Answer{std::string(name_of(held)), std::string(name_of(held)), Kind::holds, ""};
}

}  // namespace

ProbeResult kept_weights(const ProbeTarget& target) {
  // Two equal keys, and an lse that is too large by log(2): weights of a half, or of a quarter where it is read.
  Probe p = target.probe("pass=backward seq=1x2 dim=1 scale=1 out=dv");
  const Arithmetic a = target.arithmetic(p);
  p.set_q(zero);
  p.set(TensorId::dout, [](auto, auto) { return 1.0; });
  p.set(TensorId::saved_lse, [](auto, auto) { return std::log(4.0); });
  p.run(target.backend);
  return either(a.kept_weights, p.gradient(TensorId::dv, 0, 0), 0.5, 0.25, shown(p, TensorId::dv));
}

ProbeResult delta_from_weights(const ProbeTarget& target) {
  // o is 0, and told to be 1: D is what it is told where it is the sum of do*o.
  Probe p = target.probe("pass=backward seq=1x2 dim=1 scale=1 out=dq");
  const Arithmetic a = target.arithmetic(p);
  p.set_q(zero);
  p.set_k([](std::int64_t j, auto) { return j == 0 ? 1.0 : 0.0; });
  p.set_v([](std::int64_t j, auto) { return j == 0 ? 1.0 : -1.0; });
  p.set(TensorId::dout, [](auto, auto) { return 1.0; });
  p.set(TensorId::saved_lse, [](auto, auto) { return std::log(2.0); });
  p.set(TensorId::saved_o, [](auto, auto) { return 1.0; });
  p.run(target.backend);
  return either(a.delta_from_weights, p.gradient(TensorId::dq, 0, 0), 0.5, 0, shown(p, TensorId::dq));
}

ProbeResult stored_score_gradients(const ProbeTarget& target) {
  const std::string line = "pass=backward seq=1x2 dim=1/2 scale=1 out=dq" + in_accumulator(target, TensorId::dq);
  const Arithmetic a = target.arithmetic(target.probe(line));
  return digits_of(a.stored_score_gradients, a.accumulator, [&](int n) {
    // dS of the first key is (1 + 2^-n)/4, and its key is 4.
    const double digit = std::ldexp(1.0, -n);
    Probe p = target.probe(line);
    p.set_q(zero);
    p.set_k([](std::int64_t j, auto) { return j == 0 ? 4.0 : 0.0; });
    p.set_v([&](std::int64_t j, std::int64_t c) { return j == 1 ? 0 : c == 0 ? 1 : digit; });
    p.set(TensorId::dout, [](auto, auto) { return 1.0; });
    p.set(TensorId::saved_lse, [](auto, auto) { return std::log(2.0); });
    p.set(TensorId::saved_o, [&](auto, std::int64_t c) { return c == 0 ? 0.5 : digit / 2; });
    p.run(target.backend);
    return std::pair(p.gradient(TensorId::dq, 0, 0), shown(p, TensorId::dq));
  });
}

ProbeResult stored_head_gradients(const ProbeTarget& target) {
  // Two query heads of one key head; each gives 1 + 2^-n to dv.
  const std::string line = "dtype=" + std::string(name_of(target.dtype)) +
                           " pass=backward heads=2/1 seq=2x1 dim=1 out=dv" + in_accumulator(target, TensorId::dv);
  const ProbeSizes sizes = {1, 2, 1, 0, 0};
  const Arithmetic a = target.arithmetic(Probe(line, sizes));
  // Weights of 1, stored or not.
  return digits_of(a.stored_head_gradients, a.accumulator, [&](int n) {
    Probe p(line, sizes);
    p.set_q(zero);
    p.set(TensorId::dout, [&](std::int64_t i, auto) { return i == 0 ? 1 : std::ldexp(1.0, -n); });
    p.set(TensorId::saved_lse, zero);
    p.run(target.backend);
    return std::pair(p.gradient(TensorId::dv, 0, 0) / 2, shown(p, TensorId::dv));
  });
}

ProbeResult varying_order(const ProbeTarget& target) {
  constexpr int kRuns = 12;
  Probe p = target.probe("pass=backward seq=65x67 dim=3 scale=1 out=dq,dk,dv");
  const Arithmetic a = target.arithmetic(p);
  // Sums of many terms of every size: in another order they have other last digits.
  const auto waves = [](double step) {
    return [=](std::int64_t l, std::int64_t c) { return std::sin(step * static_cast<double>(3 * l + c + 1)); };
  };
  p.set_q(waves(1.7));
  p.set_k(waves(2.3));
  p.set_v(waves(0.9));
  p.set(TensorId::dout, waves(1.1));
  p.set(TensorId::saved_o, waves(0.3));
  p.set(TensorId::saved_lse, [](auto, auto) { return 4.5; });
  std::vector<double> first, now;
  for (int run = 0; run < kRuns; ++run) {
    p.run(target.backend);
    for (const TensorId id : {TensorId::dq, TensorId::dk, TensorId::dv}) {
      for (std::int64_t l = 0; l < 65; ++l) now.push_back(p.gradient(id, l, 0));
    }
    if (run == 0) first = now;
    if (now != first && !a.varying_order) {
      return Answer{"false", "true", Kind::is_false,
                    fmt::format("run {} of {} gave other bits of \"{}\"", run + 1, kRuns, print_case(p.problem()))};
    }
    now.clear();
  }
  const std::string stated = a.varying_order ? "true" : "false";
  return Answer{stated, stated, Kind::holds, ""};
}

}  // namespace attest::probes
