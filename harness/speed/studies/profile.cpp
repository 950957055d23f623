#include "harness/speed/studies/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "harness/base/user_error.h"
#include "reference/operators/operator.h"
#include "reference/options/case_line.h"

namespace attest {
namespace {

std::optional<Case> with_half(const Case& source, std::int64_t Call::*size) {
  Problem half = source.problem;
  if (half.call.*size < 2 || half.call.*size % 2 != 0) return std::nullopt;
  half.call.*size /= 2;
  try {
    // The line is read again, so that an option that forbids the change is found.
    return case_from_line(print_case(half));
  } catch (const UserError&) {
    return std::nullopt;
  }
}

/// Q K^T and P V together as a share of the whole, at most.
constexpr double kMostProducts = 1.1;

double operations_of(const Case& one) {
  Problem forward = one.problem;  // which has all that hides pairs, and no saved results to compute
  forward.call.set_pass(Pass::forward);
  return operator_of(one.problem).useful_operations(one.problem, make_inputs(forward).views());
}

const BenchLine* line_of(const BenchCase& result, const std::string& backend) {
  for (const BenchLine& line : result.lines) {
    if (line.backend == backend && line.wrong.empty()) return &line;
  }
  return nullptr;
}

std::string percent(double share) { return share < 0 ? "-" : fmt::format("{:.0f}%", 100 * share); }

/// What to look at first.
std::string largest_of(const TimeShares& s) {
  if (s.idle > 0.3) return "idle threads";
  const double largest = std::max({s.scores, s.outputs, s.rest});
  if (largest < 0) return "";
  return largest == s.scores ? "QK" : largest == s.outputs ? "PV" : "softmax, rest";
}

}  // namespace

std::vector<AblatedCase> ablated_cases(const Case& source) {
  std::vector<AblatedCase> cases;
  cases.push_back({Ablation::none, source, operations_of(source)});
  const auto add = [&](Ablation which, std::optional<Case> changed) {
    if (!changed) return;
    const double operations = operations_of(*changed);
    cases.push_back({which, std::move(*changed), operations});
  };
  add(Ablation::key_dim, with_half(source, &Call::key_dim));
  add(Ablation::value_dim, with_half(source, &Call::value_dim));
  add(Ablation::queries, with_half(source, &Call::query_length));
  return cases;
}

std::vector<TimeShares> time_shares(const std::vector<AblatedCase>& cases, const std::vector<BenchCase>& timed,
                                    int threads) {
  std::vector<TimeShares> all;
  if (cases.at(0).operations <= 0) return all;  // nothing of it is QK or PV
  for (const BenchLine& line : timed.at(0).lines) {
    TimeShares shares;
    shares.backend = line.backend;
    bool timed_everywhere = true;
    for (const BenchCase& one : timed) timed_everywhere = timed_everywhere && line_of(one, line.backend);
    if (!timed_everywhere) continue;
    const double whole = line.median();
    const auto disturbed = [&](std::size_t n) { return !line_of(timed[n], line.backend)->disturbed.empty(); };
    const auto share = [](double part) { return std::clamp(part, 0.0, 1.0); };
    for (std::size_t n = 1; n < cases.size(); ++n) {
      if (disturbed(0) || disturbed(n)) continue;
      const double half = line_of(timed[n], line.backend)->median();
      if (cases[n].which == Ablation::key_dim) shares.scores = share(2 * (whole - half) / whole);
      if (cases[n].which == Ablation::value_dim) shares.outputs = share(2 * (whole - half) / whole);
      if (cases[n].which != Ablation::queries) continue;
      const double fewer = cases[0].operations - cases[n].operations;  // a mask may hide another share of the pairs
      if (fewer > 0) shares.fixed = share(1 - (whole - half) / whole * cases[0].operations / fewer);
    }
    // Beyond what noise explains, time doesn't go by these sizes.
    if (shares.scores + shares.outputs > kMostProducts) shares.scores = shares.outputs = -1;
    if (shares.scores >= 0 && shares.outputs >= 0) shares.rest = share(1 - shares.scores - shares.outputs);
    if (!line.steps.threads.empty()) shares.idle = share(1 - median(line.steps.threads) / threads);
    all.push_back(shares);
  }
  return all;
}

void print_profile(const std::vector<TimeShares>& shares, std::FILE* out) {
  fmt::print(out, "  {:<10} {:>8} {:>8} {:>14} {:>7} {:>7}  {}\n", "profile", "QK", "PV", "softmax, rest", "fixed",
             "idle", "largest");
  for (const TimeShares& s : shares) {
    fmt::print(out, "  {:<10} {:>8} {:>8} {:>14} {:>7} {:>7}  {}\n", s.backend, percent(s.scores), percent(s.outputs),
               percent(s.rest), percent(s.fixed), percent(s.idle), largest_of(s));
  }
  std::fflush(out);
}

}  // namespace attest
