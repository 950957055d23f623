// Probes of the functions: exp, log, tanh, and division.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "harness/probe/arithmetic_probes.h"
#include "harness/probe/pair_weights.h"

namespace attest::probes {
namespace {

constexpr std::int64_t kFunctionPoints = 1024;

/// What many measurements prove of an error, each with what else it may hold.
class Evidence {
 public:
  void add(double measured, double others, std::string shown) {
    if (std::isnan(measured)) measured = kInfinity;
    if (all_.empty() || measured - others > beyond_) {
      beyond_ = measured - others;
      shown_ = std::move(shown);
    }
    all_.push_back({others, measured});
  }
  /// The output that shows the largest error.
  const std::string& shown() const { return shown_; }
  /// The error is at least this somewhere.
  double least() const {
    double least = 0;
    for (const auto& [others, measured] : all_) least = std::max(least, measured - others);
    return least;
  }
  /// And at most this in the quarter where it is seen best.
  double most() {
    std::sort(all_.begin(), all_.end());
    double most = least();
    for (std::size_t n = 0; n < all_.size() / 4; ++n) most = std::max(most, all_[n].first + all_[n].second);
    return most;
  }

 private:
  std::vector<std::pair<double, double>> all_;
  double beyond_ = 0;
  std::string shown_;
};

double lse_roundoff(const ProbeTarget& target, const Arithmetic& a) {
  const DType held = accumulator_of(target.dtype);
  return narrower(held, a.accumulator) ? unit_roundoff(held) : 0;
}

}  // namespace

double error_of_one(const ProbeTarget& target) {
  // One key: lse is its score and log(exp(0)).
  Probe p = target.probe("seq=1 dim=1 scale=1 out=o,lse");
  if (refusal_of(target.backend, p.problem())) return 0;
  p.set_q(zero);
  p.run(target.backend);
  return std::fabs(p.lse(0));
}

Answer ulps(double stated, double least, double most, std::string shown) {
  const bool wide = stated > kFreeUlps && stated > kSlack * most;
  return {fmt::format("{:g} ulps", stated), fmt::format("{:.2f} ulps", std::max(least, 0.0)),
          least > stated * (1 + 1e-6) ? Answer::Kind::is_false
          : wide                      ? Answer::Kind::too_wide
                                      : Answer::Kind::holds,
          std::move(shown)};
}

ProbeResult exp_error(const ProbeTarget& target) {
  const Arithmetic a = target.arithmetic(target.probe("seq=2 dim=2 scale=1"));
  if (rounds_maxima(a)) return std::nullopt;
  const PairWeights pairs(target, small_scores(target, a));
  const double ulp = 2 * unit_roundoff(a.accumulator);
  Evidence evidence;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const long double exact = pairs.exact(i);
    const auto error = static_cast<double>(std::fabs((pairs.weight(i) - exact) / exact));
    evidence.add(error / ulp, pairs.others(i) / ulp, pairs.shown(i));
  }
  return ulps(a.exp_ulps, evidence.least(), evidence.most(), evidence.shown());
}

ProbeResult log_error(const ProbeTarget& target) {
  // Row i sees i + 1 keys of score 0.
  Probe p = target.probe("seq=512 dim=1 causal out=o,lse");
  p.set_q(zero);
  const double one = error_of_one(target);
  p.run(target.backend);
  const Arithmetic a = target.arithmetic(p);
  const double u = unit_roundoff(a.accumulator);
  Evidence evidence;
  for (std::int64_t i = 1; i < 512; ++i) {
    const auto exact = std::log(static_cast<long double>(i + 1));
    const auto error = static_cast<double>(std::fabs((p.lse(i) - exact) / exact));
    double others = (a.base2 || a.fused_log2e ? 3 : 1) * 1.01 * u + lse_roundoff(target, a);
    // Weights that are not 1 make a sum that is rounded again and again.
    if (one > 0) others += (one + static_cast<double>(i + 1) * u) / static_cast<double>(exact);
    evidence.add(error / (2 * u), others / (2 * u), p.shown_lse(i));
  }
  return ulps(a.log_ulps, evidence.least(), evidence.most(), evidence.shown());
}

ProbeResult tanh_error(const ProbeTarget& target) {
  // One key: lse is its score.
  Probe p = target.probe(fmt::format("seq={}x1 dim=1 scale=1 softcap=1 out=o,lse", kFunctionPoints));
  const auto argument = [](std::int64_t i) { return rounded_to(DType::bf16, static_cast<double>(i + 1) / 128); };
  p.set_q([&](std::int64_t i, std::int64_t) { return argument(i); });
  p.set_k([](std::int64_t, std::int64_t) { return 1.0; });
  p.run(target.backend);
  const Arithmetic a = target.arithmetic(p);
  const double u = unit_roundoff(a.accumulator), one = error_of_one(target);
  Evidence evidence;
  for (std::int64_t i = 0; i < kFunctionPoints; ++i) {
    const auto exact = std::tanh(static_cast<long double>(argument(i)));
    const auto error = static_cast<double>(std::fabs((p.lse(i) - exact) / exact));
    const auto exact_size = static_cast<double>(exact);
    double others =
        (a.base2 || a.fused_log2e ? 5 : 1) * 1.01 * u + lse_roundoff(target, a) + one / static_cast<double>(exact);
    if (held_scores(a) != a.accumulator) {
      others += a.score_stores * (unit_roundoff(a.stored_scores) * 1.01 +
                                  underflow_unit(a.stored_scores, a.flush_to_zero) / static_cast<double>(exact));
    }
    // lse is what log gives of exp of the score, or of what the product with log2(e) was rounded by.
    if (a.no_maximum || a.fused_log2e) {
      if (a.sum_of_stored) others += 1.01 * unit_roundoff(a.stored_weights) / exact_size;
      others += (2 * u * (a.exp_ulps + 2) + (a.no_maximum ? 2 * u * a.log_ulps * exact_size : 0)) / exact_size;
    }
    // Stores and a split scale move the argument, and that moves tanh by no more than as much.
    if (a.scale == ScalePlacement::split_root) others += 5 * u;
    evidence.add(error / (2 * u), others / (2 * u), p.shown_lse(i));
  }
  return ulps(a.tanh_ulps, evidence.least(), evidence.most(), evidence.shown());
}

ProbeResult division(const ProbeTarget& target) {
  // Scores of 0: the sum is the number of keys, and only key 0 has a value.
  double worst = 0;
  std::string shown_by;
  Arithmetic a;
  for (std::int64_t keys : {3, 5, 7, 11, 13, 49}) {
    Probe p = target.probe(fmt::format("seq=1x{} dim=1/96", keys));
    const auto value = [](std::int64_t c) { return static_cast<double>(2 * c + 1); };
    p.set_q(zero);
    p.set_v([&](std::int64_t j, std::int64_t c) { return j == 0 ? value(c) : 0; });
    p.run(target.backend);
    a = target.arithmetic(p);
    const double u = unit_roundoff(a.accumulator);
    for (std::int64_t c = 0; c < 96; ++c) {
      const long double exact = static_cast<long double>(value(c)) / static_cast<long double>(keys);
      const auto error = static_cast<double>(std::fabs((p.out(0, c) - exact) / exact));
      if (!(error / u <= worst)) shown_by = p.shown(0, c);
      worst = std::max(worst, std::isnan(error) ? kInfinity : error / u);
    }
  }
  const double u = unit_roundoff(a.accumulator), one = error_of_one(target);
  // A weight that is divided first is rounded once more in its product, and in its store.
  double others = a.normalised_before_storage ? 1 : 0;
  if (a.normalised_before_storage && narrower(a.stored_weights, a.accumulator)) {
    others += unit_roundoff(a.stored_weights) * 1.01 / u;
  }
  if (narrower(target.dtype, a.accumulator)) others += target.u_out() * 1.01 / u;
  if (one > 0) {  // other weights than 1 are stored, and summed with roundings
    others += 2 * (49 + one / u);
    if (narrower(a.stored_weights, a.accumulator)) others += 2.02 * unit_roundoff(a.stored_weights) / u;
  }
  const double stated = division_roundings(a.division);
  const bool seen = others < 1.5;
  const bool wide = seen && !a.normalised_before_storage && a.division == Division::reciprocal && worst <= 1 + others;
  const Answer::Kind kind = worst - others > stated * (1 + 1e-6) ? Answer::Kind::is_false
                            : wide                               ? Answer::Kind::too_wide
                                                                 : Answer::Kind::holds;
  const double shown = seen ? worst : std::max(0.0, worst - others);
  return Answer{fmt::format("{:g} u", stated + (seen ? others : 0)), fmt::format("{:.2f} u", shown), kind, shown_by};
}

}  // namespace attest::probes
