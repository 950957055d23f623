#include <algorithm>
#include <cmath>

#include "harness/probe/arithmetic_probes.h"
#include "harness/probe/probe.h"

namespace attest {
namespace {

using namespace probes;

struct ArithmeticProbe {
  const char* name;
  Found (*ask)(const Asked&);
  bool structural;  ///< of the steps that others are seen through: where it is false, the rest says nothing
  /// Seen in how a row's keys are summed and divided, which looks otherwise where they are cut into runs whose results
  /// are merged: nothing is asked there.
  bool across_keys = false;
};

constexpr ArithmeticProbe kProbes[] = {
    {"accumulator", accumulator, true},
    {"stored weights", stored_weights, true},
    {"stored scores", stored_scores, true},
    {"base", base_two, true},
    {"scale", scale_placement, true},
    {"divided", normalised, true, true},
    {"row sum", which_sum, false, true},
    {"exp", exp_error, false},
    {"log", log_error, false},
    {"tanh", tanh_error, false},
    {"division", division, false, true},
    {"key block", key_block, false, true},
    {"lazy threshold", lazy_threshold, false, true},
    {"flush to zero", flush_to_zero, false},
    {"state chunk", state_chunk, false},
};

/// Whether the backend computes anything like attention in this type: no statement is to blame for what it doesn't.
Found plain_case(const Asked& asked) {
  Probe p = asked.probe("seq=4x8 dim=4");
  p.set_q(zero);
  p.set_v([](std::int64_t j, std::int64_t) { return static_cast<double>(j); });
  p.run(asked.backend);
  double worst = 0;
  for (std::int64_t i = 0; i < 4; ++i) {
    for (std::int64_t c = 0; c < 4; ++c) {
      const double error = std::fabs(p.out(i, c) - 3.5);
      worst = std::max(worst, std::isfinite(error) ? error : kInfinity);
    }
  }
  if (worst < 0.25) return std::nullopt;
  return Answer{"mean of 8 values", worst == kInfinity ? "no number" : fmt::format("off by {:.3g}", worst),
                Answer::Kind::is_false};
}

/// Asks in one storage type, and adds what comes of it. Whether the backend answers at all.
bool add(const char* name, const Asked& asked, Found (*ask)(const Asked&), std::vector<ProbedStatement>& findings) {
  Found found;
  const std::string failure = observe([&] {
    found = ask(asked);
    return std::string();
  });
  if (failure == "refused" || (failure.empty() && !found)) return true;
  ProbedStatement statement{fmt::format("{}, {}", name, name_of(asked.dtype)), "", failure, false};
  if (found) {
    statement.stated = found->stated;
    statement.observed = found->observed;
    statement.holds = found->kind == Answer::Kind::holds;
    statement.too_wide = found->kind == Answer::Kind::too_wide;
  }
  findings.push_back(statement);
  return statement.holds || statement.too_wide;
}

}  // namespace

std::vector<ProbedStatement> probe_arithmetic(Backend& backend) {
  std::vector<ProbedStatement> findings;
  for (DType dtype : values_of<DType>()) {
    const Asked asked{backend, dtype};
    if (!add("plain case", asked, plain_case, findings)) continue;
    const Probe plain = asked.probe("seq=4x8 dim=4");
    const bool cut = !refusal_of(backend, plain.problem()) && asked.arithmetic(plain).parts > 0;
    for (const ArithmeticProbe& probe : kProbes) {
      if (cut && probe.across_keys) continue;
      if (!add(probe.name, asked, probe.ask, findings) && probe.structural) break;
    }
  }
  return findings;
}

std::string ProbedStatement::verdict() const {
  if (refused) return "refused";
  if (too_wide) return "TOO WIDE: declares " + stated + ", shows " + observed;
  if (!holds) return "FALSE: observed " + observed;
  return stated == observed ? "holds" : "holds: observed " + observed;
}

}  // namespace attest
