#include "reference/merge/part_merge.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "reference/arithmetic/rounding.h"

namespace attest {
namespace {

bool sees_something(const PartOfRow& part) { return part.lse != -kInfinity; }

double gamma(double roundings, double u) { return roundings * u / (1 - roundings * u); }

double error_of(const PartOfRow& part, std::size_t c) { return part.out_error.empty() ? 0 : part.out_error[c]; }

/// Roundings of an arithmetic as a merge of n parts uses it.
struct Roundings {
  double u, eta, largest;
  double e_exp, e_log;
  double steps;        ///< exponentials that a part may pass besides its own
  double converted;    ///< of a logsumexp on its way into the other base
  double before, end;  ///< of a division: before the parts are added, or at the end
  Roundings(const Arithmetic& a, double n, bool base2)
      : u(unit_roundoff(a.accumulator)),
        eta(underflow_unit(a.accumulator, a.flush_to_zero)),
        largest(largest_held(a.accumulator)),
        e_exp(2 * u * a.exp_ulps),
        e_log(2 * u * a.log_ulps),
        steps(a.key_block > 0 ? n : 0),
        converted(a.base2 != base2 || a.fused_log2e ? gamma(2, u) : 0),
        before(a.normalised_before_storage ? division_roundings(a.division) : 0),
        end(a.normalised_before_storage ? 0 : division_roundings(a.division)) {}
};

/// The parts that see something, with what their weights may be off. Logsumexps are in nats here.
struct Weights {
  std::vector<const PartOfRow*> parts;
  std::vector<double> exact, error;  ///< of each part: its weight, and how far the computed one may be off
  std::vector<double> below;         ///< how far its logsumexp lies below the largest
  double top = -kInfinity;           ///< the largest logsumexp
  double all = 0;                    ///< W: the sum of the errors
  double largest = 0;                ///< the largest exponent of an error
};

// clang-format off
Weights weights_of(std::span<const PartOfRow> parts, const MergedRow& merged, const Roundings& r, double nats) {
  Weights w;
  double largest_error = 0;
  for (const PartOfRow& part : parts) {
    if (!sees_something(part)) continue;
    w.parts.push_back(&part);
    w.top = std::max(w.top, nats * part.lse);
    largest_error = std::max(largest_error, nats * part.lse_error);
  }
  const double n = static_cast<double>(w.parts.size());
  for (const PartOfRow* part : w.parts) {
    const double lse = nats * part->lse, own = nats * part->lse_error;
    const double off = own + largest_error + r.converted * (std::fabs(lse) + std::fabs(w.top) + own + largest_error);
    const double below = w.top - lse;
    const double t = off + r.u * (below + off) + r.e_exp + r.steps * (r.e_exp + r.u) * (1 + n * r.e_exp);
    const double distance = lse - nats * merged.lse;  // the weight is exp of it
    w.below.push_back(below);
    w.exact.push_back(std::exp(distance));
    // Of weights that vanish the second form neither overflows nor is no number.
    w.error.push_back(t < 1 ? w.exact.back() * std::expm1(t) : std::exp(distance + t) - w.exact.back());
    w.all += w.error.back();
    w.largest = std::max(w.largest, t);
  }
  return w;
}

double output_error(const Weights& w, const MergedRow& merged, std::size_t c, const Roundings& r) {
  const double n = static_cast<double>(w.parts.size()), o = merged.out[c];
  double centred = 0, farthest = 0, inherited = 0, largest_inherited = 0, products = 0, largest = 0, magnitudes = 0;
  for (std::size_t x = 0; x < w.parts.size(); ++x) {
    const double value = w.parts[x]->out[c], off = error_of(*w.parts[x], c), size = std::fabs(value) + off;
    centred += w.error[x] * std::fabs(value - o);
    farthest = std::max(farthest, std::fabs(value - o));
    inherited += (w.exact[x] + w.error[x]) * off;
    largest_inherited = std::max(largest_inherited, off);
    products += (w.exact[x] + w.error[x]) * size;
    largest = std::max(largest, size);
    magnitudes += size + std::fabs(o);
  }
  if (n * largest > r.largest / 2) return kInfinity;
  if (w.all < 1) {
    farthest = std::min(farthest, centred / (1 - w.all));
    largest_inherited = std::min(largest_inherited, inherited / (1 - w.all));
    largest = std::min(largest, products / (1 - w.all));
  }
  const double rounding = gamma(n + r.steps + r.before + 1, r.u) * largest;
  const double division = (gamma(n + r.steps, r.u) + r.end * r.u) * std::fabs(o);
  const double underflow = r.eta * n * (2 + magnitudes);
  return (1 + 2 * gamma(2 * n + 8, r.u)) * (farthest + largest_inherited + rounding + division + underflow);
}
// clang-format on

/// NaN in a column is NaN in every merge, and so are infinities of both signs. Of one sign they stay, unless the part's
/// weight may be 0.
double error_of_non_finite(const Weights& w, std::size_t c, const Roundings& r) {
  for (std::size_t x = 0; x < w.parts.size(); ++x) {
    if (std::isnan(w.parts[x]->out[c])) return 0;
  }
  for (std::size_t x = 0; x < w.parts.size(); ++x) {
    const double least = w.exact[x] - w.error[x];
    const bool may_vanish = !(least > 4 * r.eta);
    if (std::isinf(w.parts[x]->out[c]) && may_vanish) return kInfinity;
  }
  return 0;
}

double lse_error(const Weights& w, double lse, const Roundings& r) {
  const double n = static_cast<double>(w.parts.size());
  const double log_sum = lse - w.top;
  double b = w.largest;
  if (w.all < 1) b = std::min(b, -std::log1p(-w.all));
  b -= std::log1p(-gamma(n + r.steps, r.u));
  const double conversions = 2 * r.converted * (std::fabs(w.top) + std::fabs(log_sum) + b);
  return (b + conversions + r.e_log * (std::fabs(log_sum) + b) + r.u * (std::fabs(lse) + b)) * (1 + 4 * r.u);
}

}  // namespace

MergedRow merge_parts(std::span<const PartOfRow> parts, bool base2) {
  MergedRow merged{std::vector<double>(parts.front().out.size()), -kInfinity};
  double top = -kInfinity, sum = 0;
  bool is_number = true;
  for (const PartOfRow& part : parts) {
    if (!sees_something(part)) continue;
    is_number = is_number && std::isfinite(part.lse);
    top = std::max(top, part.lse);
  }
  if (!is_number) return {std::vector<double>(merged.out.size(), kNaN), kNaN};
  if (top == -kInfinity) return merged;
  for (const PartOfRow& part : parts) {
    if (!sees_something(part)) continue;
    const double weight = base2 ? std::exp2(part.lse - top) : std::exp(part.lse - top);
    sum += weight;
    for (std::size_t c = 0; c < merged.out.size(); ++c) merged.out[c] += weight * part.out[c];
  }
  for (double& out : merged.out) out /= sum;
  merged.lse = top + (base2 ? std::log2(sum) : std::log(sum));
  return merged;
}

MergedRow bound_merge(std::span<const PartOfRow> parts, const MergedRow& merged, const Arithmetic& arithmetic,
                      bool base2) {
  MergedRow bound{std::vector<double>(merged.out.size()), 0};
  if (!std::isfinite(merged.lse)) return bound;  // zeros and -inf, or NaN
  const double nats = base2 ? std::numbers::ln2 : 1;
  const auto count = static_cast<double>(std::ranges::count_if(parts, sees_something));
  const Roundings r(arithmetic, count, base2);
  const Weights weights = weights_of(parts, merged, r, nats);
  const auto beyond = [&](const PartOfRow* part) {
    return r.converted > 0 && 2 * std::fabs(part->lse) + part->lse_error > r.largest;
  };
  if (std::ranges::any_of(weights.parts, beyond)) {
    bound.out.assign(bound.out.size(), kInfinity);
    bound.lse = kInfinity;
    return bound;
  }
  for (std::size_t c = 0; c < bound.out.size(); ++c) {
    const bool finite =
        std::ranges::all_of(weights.parts, [&](const PartOfRow* p) { return std::isfinite(p->out[c]); });
    bound.out[c] = kEvaluation * (finite ? output_error(weights, merged, c, r) : error_of_non_finite(weights, c, r));
  }
  bound.lse = kEvaluation * lse_error(weights, nats * merged.lse, r) / nats;
  return bound;
}

}  // namespace attest
