#include "reference/softmax/bounds/part_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/arithmetic/rounding.h"

namespace attest {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

bool sees_something(const PartOfRow& part) { return part.lse != -kInfinite; }

double gamma(double roundings, double u) { return roundings * u / (1 - roundings * u); }

/// What rounding a number to a type may cost, when `from` is a narrower or the same type nothing.
double rounding_to(DType type, DType from, double magnitude) {
  const double relative = narrower(type, from) ? unit_roundoff(type) * magnitude : 0;
  return relative + (narrower(type, from) ? underflow_unit(type, false) : 0);
}

double error_of(const PartOfRow& part, std::size_t c) { return part.out_error.empty() ? 0 : part.out_error[c]; }

/// The parts that see something, with what their weights may be off.
struct Weights {
  std::vector<const PartOfRow*> parts;
  std::vector<double> exact, error;  ///< of each part: its weight, and how far the computed one may be off
  double all = 0;                    ///< W: the sum of the errors
  double largest = 0;                ///< the largest exponent of an error
};

// clang-format off
Weights weights_of(std::span<const PartOfRow> parts, const MergedRow& merged, const Arithmetic& a) {
  const double u = unit_roundoff(a.accumulator);
  Weights w;
  double top = -kInfinite, lse_errors = 0;
  for (const PartOfRow& part : parts) {
    if (!sees_something(part)) continue;
    w.parts.push_back(&part);
    top = std::max(top, part.lse);
    lse_errors = std::max(lse_errors, part.lse_error + u * (std::fabs(part.lse) + part.lse_error));
  }
  const auto n = static_cast<double>(w.parts.size());
  const double exp_error = 2 * u * a.exp_ulps;
  for (const PartOfRow* part : w.parts) {
    const double off = part->lse_error + u * (std::fabs(part->lse) + part->lse_error);  // as it travelled
    const double below = top - part->lse + off + lse_errors;  // of the largest as computed
    const double t = off + u * below + n * exp_error / (1 - exp_error);
    const double weight = std::exp(part->lse - merged.lse);
    w.exact.push_back(weight);
    w.error.push_back(weight * std::expm1(t));
    w.all += w.error.back();
    w.largest = std::max(w.largest, t);
  }
  return w;
}

double output_bound(const Weights& w, const MergedRow& merged, std::size_t c, const Arithmetic& a, DType sent,
                    DType stored) {
  const double u = unit_roundoff(a.accumulator), eta = underflow_unit(a.accumulator, a.flush_to_zero);
  const auto n = static_cast<double>(w.parts.size());
  const double o = merged.out[c];
  double centred = 0, farthest = 0, inherited = 0, largest_inherited = 0, products = 0, largest = 0, magnitudes = 0;
  for (std::size_t r = 0; r < w.parts.size(); ++r) {
    const double value = w.parts[r]->out[c], own = error_of(*w.parts[r], c);
    const double off = own + rounding_to(sent, a.accumulator, std::fabs(value) + own);
    const double size = std::fabs(value) + off;
    if (!std::isfinite(size) || size > largest_held(sent)) return kInfinite;
    centred += w.error[r] * std::fabs(value - o);
    farthest = std::max(farthest, std::fabs(value - o));
    inherited += (w.exact[r] + w.error[r]) * off;
    largest_inherited = std::max(largest_inherited, off);
    products += (w.exact[r] + w.error[r]) * size;
    largest = std::max(largest, size);
    magnitudes += size + std::fabs(o);
  }
  if (n * largest > largest_held(a.accumulator) / 2) return kInfinite;
  if (w.all < 1) {
    farthest = std::min(farthest, centred / (1 - w.all));
    largest_inherited = std::min(largest_inherited, inherited / (1 - w.all));
    largest = std::min(largest, products / (1 - w.all));
  }
  const double rounding = gamma(2 * n + 1, u) * largest;
  const double division = (gamma(2 * n, u) + division_roundings(a.division) * u) * std::fabs(o);
  const double underflow = eta * n * (2 + magnitudes);
  const double before = (1 + 2 * gamma(2 * n + 8, u)) * (farthest + largest_inherited + rounding + division + underflow);
  if (std::fabs(o) + before > largest_held(stored)) return kInfinite;
  return before + rounding_to(stored, a.accumulator, std::fabs(o) + before);
}
// clang-format on

double lse_bound(const Weights& w, const MergedRow& merged, const Arithmetic& a) {
  const double u = unit_roundoff(a.accumulator), n = static_cast<double>(w.parts.size());
  double top = -kInfinite;
  for (const PartOfRow* part : w.parts) top = std::max(top, part->lse);
  const double spread = merged.lse - top;  // log of the sum
  double b = w.largest;
  if (w.all < 1) b = std::min(b, -std::log1p(-w.all));
  b -= std::log1p(-gamma(2 * n, u));
  const double log_error = 2 * u * a.log_ulps * (std::fabs(spread) + w.largest + b);
  return (b + log_error + u * (std::fabs(merged.lse) + b)) * (1 + 4 * u);
}

}  // namespace

MergedRow merge_parts(std::span<const PartOfRow> parts) {
  MergedRow merged{std::vector<double>(parts.front().out.size()), -kInfinite};
  double top = -kInfinite, sum = 0;
  for (const PartOfRow& part : parts) top = std::max(top, part.lse);
  if (top == -kInfinite) return merged;
  for (const PartOfRow& part : parts) {
    if (!sees_something(part)) continue;
    const double weight = std::exp(part.lse - top);
    sum += weight;
    for (std::size_t c = 0; c < merged.out.size(); ++c) merged.out[c] += weight * part.out[c];
  }
  for (double& out : merged.out) out /= sum;
  merged.lse = top + std::log(sum);
  return merged;
}

MergeBound bound_merge(std::span<const PartOfRow> parts, const MergedRow& merged, const Arithmetic& arithmetic,
                       DType sent, DType stored) {
  MergeBound bound{std::vector<double>(merged.out.size()), 0};
  const Weights weights = weights_of(parts, merged, arithmetic);
  if (weights.parts.empty()) return bound;  // zeros, and -inf
  const bool finite = std::all_of(weights.parts.begin(), weights.parts.end(), [](const PartOfRow* part) {
    return std::isfinite(part->lse) && std::isfinite(part->lse_error);
  });
  for (std::size_t c = 0; c < bound.out.size(); ++c)
    bound.out[c] = finite ? output_bound(weights, merged, c, arithmetic, sent, stored) : kInfinite;
  bound.lse = finite ? lse_bound(weights, merged, arithmetic) : kInfinite;
  return bound;
}

}  // namespace attest
