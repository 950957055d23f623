#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/probe/probe.h"
#include "harness/probe/probe_problem.h"
#include "reference/rounding.h"

namespace attest {
namespace {

constexpr std::int64_t kPoints = 1024;

/// The probes of one storage type.
class ArithmeticProbes {
 public:
  ArithmeticProbes(Backend& backend, DType dtype)
      : backend_(backend), dtype_(dtype), u_(unit_roundoff(dtype)), type_("dtype=" + std::string(name_of(dtype))) {}

  std::vector<ProbedStatement> run() {
    add("exp", [this] { return exp_error(); });
    add("stored weights", [this] { return stored_weights(); });
    add("log", [this] { return log_error(); });
    add("tanh", [this] { return tanh_error(); });
    add("division", [this] { return division(); });
    add("accumulator", [this] { return accumulator(); });
    add("key block", [this] { return key_block(); });
    add("flush to zero", [this] { return flush_to_zero(); });
    return std::move(findings_);
  }

 private:
  struct Answer {
    std::string stated, observed;
    bool holds;
  };

  template <class Ask>
  void add(const char* name, const Ask& ask) {
    Answer answer{"", "", false};
    const std::string failure = observe([&] {
      answer = ask();
      return std::string();
    });
    if (failure == "refused") return;
    if (!failure.empty()) answer.observed = failure;
    const std::string label = fmt::format("{}, {}", name, name_of(dtype_));
    findings_.push_back({label, answer.stated, answer.observed, answer.holds});
  }

  Probe probe(const std::string& options) const { return Probe(type_ + " " + options); }
  Arithmetic arithmetic(const Probe& probe) const { return backend_.arithmetic(probe.problem()); }

  static Answer ulps(double stated, double observed) {
    return {fmt::format("{:g} ulps", stated), fmt::format("{:.2f} ulps", observed), observed <= stated};
  }

  /// Two keys with scores 0 and x: column 0 is exp(x) / (1 + exp(x)), column 1 is 1 / (1 + exp(x)).
  Probe two_keys() const {
    Probe p = probe(fmt::format("seq={}x2 dim=1/2 scale=1", kPoints));
    p.set_q([this](std::int64_t i, std::int64_t) { return point(i); });
    p.set_k([](std::int64_t j, std::int64_t) { return static_cast<double>(j); });
    p.set_v([](std::int64_t j, std::int64_t c) { return j == c ? 0.0 : 1.0; });
    p.run(backend_);
    return p;
  }
  /// From just below 0 to where exp(x) is still a normal number.
  double point(std::int64_t i) const {
    const double lowest = dtype_ == DType::f64 ? -708 : -87;
    return std::ceil(lowest * static_cast<double>(i + 1) / kPoints * 1024) / 1024;
  }

  Answer exp_error() const {
    const Probe p = two_keys();
    const Arithmetic a = arithmetic(p);
    double worst = 0;
    for (std::int64_t i = 0; i < kPoints; ++i) {
      const long double e = std::exp(static_cast<long double>(point(i))), exact = e / (1 + e);
      const double error = static_cast<double>(std::fabs((p.out(i, 0) - exact) / exact));
      // What sum, division, a stored weight and base 2 may add. Where the sum is 1 most divisions are exact.
      const bool exact_sum = e < u_ / 2;
      const bool exact_division = exact_sum && (a.division == Division::ieee || a.division == Division::reciprocal);
      double others = (exact_sum ? 0 : u_) + (exact_division ? 0 : division_roundings(a.division) * u_);
      if (narrower(a.stored_weights, dtype_)) others += unit_roundoff(a.stored_weights);
      if (a.base2) others += 4 * u_ * std::fabs(point(i));
      worst = std::max(worst, (error - others) / (2 * u_));
    }
    return ulps(a.exp_ulps, worst);
  }

  /// exp(x) as it enters P*V, where the sum is 1: whether numbers of few bits alone occur.
  Answer stored_weights() const {
    const Probe p = two_keys();
    const Arithmetic a = arithmetic(p);
    DType observed = dtype_;
    for (DType narrow : {DType::f32, DType::f16, DType::bf16}) {
      if (!narrower(narrow, dtype_)) continue;
      bool all = true;
      int seen = 0;
      for (std::int64_t i = 0; i < kPoints; ++i) {
        // Above 2^-14 every type here has all of its bits; the quotient of both columns undoes the division.
        if (point(i) < -9) continue;
        const double weight = p.out(i, 0) / p.out(i, 1);
        std::uint64_t storage = 0;
        store(&storage, narrow, 0, weight);
        all &= std::fabs(load(&storage, narrow, 0) - weight) <= 16 * u_ * weight;
        ++seen;
      }
      if (all && seen > 0) observed = narrow;
    }
    const DType stated = narrower(a.stored_weights, dtype_) ? a.stored_weights : dtype_;
    return {std::string(name_of(stated)), std::string(name_of(observed)), !narrower(observed, stated)};
  }

  Answer log_error() const {
    // Row i sees i + 1 keys of score 0.
    Probe p = probe("seq=512 dim=1 causal out=o,lse");
    p.set_q(zero);
    p.run(backend_);
    const Arithmetic a = arithmetic(p);
    double worst = 0;
    for (std::int64_t i = 1; i < 512; ++i) {
      const long double exact = std::log(static_cast<long double>(i + 1));
      const double error = static_cast<double>(std::fabs((p.lse(i) - exact) / exact)) - (a.base2 ? 3 : 1) * u_;
      worst = std::max(worst, error / (2 * u_));
    }
    return ulps(a.log_ulps, worst);
  }

  Answer tanh_error() const {
    // One key: lse is its score.
    Probe p = probe(fmt::format("seq={}x1 dim=1 scale=1 softcap=1 out=o,lse", kPoints));
    const auto argument = [](std::int64_t i) { return static_cast<double>(i + 1) / 128; };
    p.set_q([&](std::int64_t i, std::int64_t) { return argument(i); });
    p.set_k([](std::int64_t, std::int64_t) { return 1.0; });
    p.run(backend_);
    const Arithmetic a = arithmetic(p);
    double worst = 0;
    for (std::int64_t i = 0; i < kPoints; ++i) {
      const long double exact = std::tanh(static_cast<long double>(argument(i)));
      const double error = static_cast<double>(std::fabs((p.lse(i) - exact) / exact)) - (a.base2 ? 5 : 1) * u_;
      worst = std::max(worst, error / (2 * u_));
    }
    return ulps(a.tanh_ulps, worst);
  }

  Answer division() const {
    // Scores of 0: the sum is the number of keys, and only key 0 has a value.
    double worst = 0;
    Arithmetic a;
    for (std::int64_t keys : {3, 5, 7, 11, 13, 49}) {
      Probe p = probe(fmt::format("seq=1x{} dim=1/96", keys));
      const auto value = [](std::int64_t c) { return static_cast<double>(2 * c + 1); };
      p.set_q(zero);
      p.set_v([&](std::int64_t j, std::int64_t c) { return j == 0 ? value(c) : 0; });
      p.run(backend_);
      a = arithmetic(p);
      for (std::int64_t c = 0; c < 96; ++c) {
        const long double exact = static_cast<long double>(value(c)) / static_cast<long double>(keys);
        worst = std::max(worst, static_cast<double>(std::fabs((p.out(0, c) - exact) / exact)) / u_);
      }
    }
    const double stated = division_roundings(a.division) + (a.normalised_before_storage ? 1 : 0);
    return {fmt::format("{:g} u", stated), fmt::format("{:.2f} u", worst), worst <= stated * (1 + 1e-6)};
  }

  Answer accumulator() const {
    // 2^k + 1 + 1 + ... - 2^k in P*V: the ones survive in a wider sum alone.
    constexpr std::int64_t kKeys = 258;
    Probe p = probe(fmt::format("seq=1x{} dim=1", kKeys));
    p.set_q(zero);
    const double large = dtype_ == DType::f64 ? 0x1p60 : 0x1p30;
    p.set_v([&](std::int64_t j, std::int64_t) { return j == 0 ? large : j == kKeys - 1 ? -large : 1.0; });
    p.run(backend_);
    const Arithmetic a = arithmetic(p);
    const bool wide = std::fabs(p.out(0, 0) * kKeys - (kKeys - 2)) < 1e-3;
    const bool says_wide = narrower(dtype_, a.accumulator);
    const auto name = [this](bool wider) { return wider ? "wider" : std::string(name_of(dtype_)); };
    return {name(says_wide), name(wide), wide || !says_wide};
  }

  /// Whether the running maximum moves between key 1 and key j: key 0 has a weight that no single exp could give.
  bool moves_before(std::int64_t keys, std::int64_t j) const {
    const bool is_double = dtype_ == DType::f64;
    const double step = is_double ? 700 : 60;
    Probe p = probe(fmt::format("seq=1x{} dim=1 scale=1", keys));
    p.set_q([](std::int64_t, std::int64_t) { return 1.0; });
    p.set_k([&](std::int64_t at, std::int64_t) { return at == 0 ? 0 : at == 1 ? step : at == j ? 2 * step : -step; });
    p.set_v([&](std::int64_t at, std::int64_t) { return at > 0 ? 0 : is_double ? 0x1p1000 : 0x1p100; });
    p.run(backend_);
    return p.out(0, 0) != 0;
  }

  Answer key_block() const {
    const Probe small = probe("seq=1x2 dim=1 scale=1");
    const std::int64_t guess = arithmetic(small).key_block, keys = guess > 0 ? 2 * guess + 2 : 1026;
    const std::int64_t stated = arithmetic(probe(fmt::format("seq=1x{} dim=1 scale=1", keys))).key_block;
    std::int64_t low = 1, high = keys - 1;  // no move up to low; one before high, if any
    if (!moves_before(keys, high)) return {block_text(stated), "one pass", true};
    while (high - low > 1) {
      const std::int64_t middle = (low + high) / 2;
      (moves_before(keys, middle) ? high : low) = middle;
    }
    return {block_text(stated), block_text(high), stated > 0 && high >= stated};
  }
  static std::string block_text(std::int64_t block) {
    return block > 0 ? fmt::format("{} keys", block) : std::string("one pass");
  }

  Answer flush_to_zero() const {
    const bool is_double = dtype_ == DType::f64;
    // A subnormal value with weight 1, and a value of 1 with a subnormal weight.
    Probe p = probe("seq=2 dim=1 scale=1");
    const double tiny = is_double ? 0x1p-1060 : 0x1p-140, low = is_double ? -730 : -95;
    p.set_q([&](std::int64_t i, std::int64_t) { return i == 0 ? 0.0 : low; });
    p.set_k([](std::int64_t j, std::int64_t) { return static_cast<double>(j); });
    p.set_v([&](std::int64_t j, std::int64_t) { return j == 0 ? 0.0 : 1.0; });
    p.run(backend_);
    const bool weight_kept = p.out(1, 0) != 0;
    p.set_v([&](std::int64_t, std::int64_t) { return tiny; });
    p.run(backend_);
    const bool kept = weight_kept && p.out(0, 0) != 0, stated = arithmetic(p).flush_to_zero;
    return {stated ? "may happen" : "never", kept ? "never" : "happens", kept || stated};
  }

  Backend& backend_;
  DType dtype_;
  double u_;
  std::string type_;
  std::vector<ProbedStatement> findings_;
};

}  // namespace

std::vector<ProbedStatement> probe_arithmetic(Backend& backend) {
  std::vector<ProbedStatement> findings;
  for (DType dtype : {DType::f32, DType::f64}) {
    for (ProbedStatement& finding : ArithmeticProbes(backend, dtype).run()) findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace attest
