#include "harness/compare.h"

#include <fmt/format.h>

#include <cmath>

namespace attest {
namespace {

/// Error in units of the bound; infinity when the classes differ.
double ratio(double got, double expected, double bound) {
  if (bound == kInfinity)
    return 0;  // the arithmetic may overflow here: nothing can be said, and `mistrusted` counts it
  if (std::isnan(expected)) return std::isfinite(got) ? kInfinity : 0;
  if (std::isinf(expected)) return got == expected ? 0 : kInfinity;
  if (!std::isfinite(got)) return kInfinity;
  const double error = std::fabs(got - expected);
  if (error == 0) return 0;
  return bound > 0 ? error / bound : kInfinity;
}

}  // namespace

void Comparison::element(const std::string& output, const std::array<std::int64_t, 4>& index, double got,
                         double expected, double bound) {
  ++compared_;
  const double measured = ratio(got, expected, bound);
  const bool wrong = !(measured <= 1);
  if (wrong) ++failures_;
  if (wrong && std::isfinite(expected) && !std::isfinite(got)) ++not_finite_;
  if (bound == kInfinity || (std::isfinite(expected) && bound > 0 && !(bound < std::fabs(expected)))) ++vacuous_;
  if (!worst_ || measured > worst_ratio_) {
    worst_ratio_ = measured;
    worst_ = WorstElement{output, index, got, expected, bound};
  }
}

std::string Comparison::cause() const {
  if (!failed()) return "";
  if (worst_ && std::isnan(worst_->expected)) return worst_->output + ": visible NaN was lost";
  if (not_finite_ > 0) return worst_->output + ": NaN or infinity where a number is expected";
  return worst_->output + ": outside the bound";
}

std::string Comparison::describe() const {
  if (!worst_) return "nothing was compared";
  const auto& i = worst_->index;
  return fmt::format("{} of {} elements are wrong; the worst: {}[{},{},{},{}] = {:.9g}, expected {:.9g} within {:.3g}",
                     failures_, compared_, worst_->output, i[0], i[1], i[2], i[3], worst_->got, worst_->expected,
                     worst_->bound);
}

Comparison compare_outputs(const Problem& p, const Expectation& e, const Bounds& bounds,
                           const GuardedOutputs& outputs) {
  Comparison comparison;
  const auto columns = static_cast<std::size_t>(p.value_dim), keys = static_cast<std::size_t>(p.key_length);
  const bool wants_out = p.wants(Output::o), wants_lse = p.wants(Output::lse);
  for (std::size_t r = 0; r < e.rows.size(); ++r) {
    const auto [b, h, i] = e.rows[r];
    for (std::size_t c = 0; wants_out && c < columns; ++c) {
      const std::size_t at = r * columns + c;
      const auto column = static_cast<std::int64_t>(c);
      comparison.element("o", {b, h, i, column}, outputs.out(b, h, i, column), e.out[at],
                         bounds.out[at] + e.own.out[at]);
    }
    if (wants_lse) {
      comparison.element("lse", {b, h, i, 0}, outputs.lse(b, h, i), e.lse[r], bounds.lse[r] + e.own.lse[r]);
    }
    for (std::size_t n = 0; n < kScoreStages.size(); ++n) {
      if (!p.wants(kScoreStages[n])) continue;
      const std::string name(kOutputNames[static_cast<std::size_t>(kScoreStages[n])]);
      for (std::size_t j = 0; j < keys; ++j) {
        const std::size_t at = r * keys + j;
        const auto key = static_cast<std::int64_t>(j);
        comparison.element(name, {b, h, i, key}, outputs.stage(kScoreStages[n], b, h, i, key), e.stages[n][at],
                           bounds.stages[n][at] + e.own.stages[n][at]);
      }
    }
  }
  const std::vector<PresentOutput> present = present_outputs(p);
  for (std::size_t n = 0; n < present.size(); ++n) {
    std::size_t at = 0;
    each_index(present[n].shape, [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
      comparison.element(std::string(present[n].name), {b, h, l, d}, outputs.present(n, b, h, l, d), e.present[n][at],
                         bounds.present[n][at] + e.own.present[n][at]);
      ++at;
    });
  }
  return comparison;
}

}  // namespace attest
