#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "harness/probe/arithmetic_probes.h"
#include "harness/probe/probe.h"
#include "harness/probe/restated.h"
#include "harness/verdict/restatement.h"
#include "reference/arithmetic/rounding.h"

namespace attest {
namespace {

using namespace probes;

struct ArithmeticProbe {
  const char* name;  ///< the member of Arithmetic that it is about
  ProbeResult (*ask)(const ProbeTarget&);
  bool structural;  ///< of the steps that others are seen through: where it is false, the rest says nothing
  /// Seen in how a row's keys are summed and divided, which looks otherwise where they are cut into runs whose results
  /// are merged: nothing is probed there.
  bool across_keys = false;
};

constexpr ArithmeticProbe kProbes[] = {
    {"accumulator", accumulator, true},
    {"no_maximum", maximum, true},
    {"stored_weights", stored_weights, true},
    {"fused_log2e", fused_log2e, true},
    {"stored_scores", stored_scores, true},
    {"base2", base_two, true},
    {"scale", scale_placement, true},
    {"normalised_before_storage", normalised, true, true},
    {"sum_of_stored", which_sum, false, true},
    {"exp_ulps", exp_error, false},
    {"log_ulps", log_error, false},
    {"tanh_ulps", tanh_error, false},
    {"division", division, false, true},
    {"key_block", key_block, false, true},
    {"lazy_threshold", lazy_threshold, false, true},
    {"flush_to_zero", flush_to_zero, false},
    {"weights_from_lse", weights_from_lse, false, true},
    {"state_chunk", state_chunk, false},
    {"kept_weights", kept_weights, false},
    {"delta_from_weights", delta_from_weights, false},
    {"stored_score_gradients", stored_score_gradients, false},
    {"stored_head_gradients", stored_head_gradients, false},
    {"varying_order", varying_order, false},
};

/// What is asked instead where states_products: each sees through the others by their bounds.
constexpr ArithmeticProbe kProductProbes[] = {
    {"query_operand", query_operand, false},
    {"key_operand", key_operand, false},
    {"value_operand", value_operand, false},
    {"weight_operand", weight_operand, false},
    {"query_rounding", query_rounding, false},
    {"key_rounding", key_rounding, false},
    {"value_rounding", value_rounding, false},
    {"weight_rounding", weight_rounding, false},
    {"weight_factor", weight_factor, false},
    {"score_sum", score_sum, false},
    {"value_sum", value_sum, false},
    {"weight_sum", weight_sum, false},
    {"score_roundings", score_roundings, false},
    {"output_roundings", output_roundings, false},
    {"exp_absolute", exp_absolute, false},
    {"exp_argument", exp_argument, false},
    {"rescale_ulps", rescale_ulps, false},
};

/// Whether the backend computes anything like attention in this type. Otherwise no statement is the cause.
ProbeResult plain_case(const ProbeTarget& target) {
  Probe p = target.probe("seq=4x8 dim=4");
  // A fixed step may not hold these values, and weights of 4 bits not an eighth.
  const Arithmetic a = target.arithmetic(target.probe("seq=4x8 dim=4"));
  if (states_steps(a) || a.weight_operand > OperandFormat::u8) return std::nullopt;
  p.set_q(zero);
  p.set_v([](std::int64_t j, std::int64_t) { return static_cast<double>(j); });
  p.run(target.backend);
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

/// The one that comes before all others.
constexpr const char* kPlainCase = "plain case";

/// Asks in one storage type, and adds what comes of it. Whether the backend answers at all.
bool add(const char* name, const ProbeTarget& target, ProbeResult (*ask)(const ProbeTarget&),
         std::vector<ProbedStatement>& findings) {
  ProbeResult found;
  const std::string failure = observe([&] {
    try {
      found = ask(target);
    } catch (const Refused&) {  // no statement is false for that
    }
    return std::string();
  });
  if (failure.empty() && !found) return true;
  ProbedStatement statement{fmt::format("{}, {}", name, name_of(target.dtype)), "", failure, false};
  statement.dtype = target.dtype;
  statement.probe = name;
  if (found) {
    statement.stated = found->stated;
    statement.observed = found->observed;
    statement.unseen = found->kind == Answer::Kind::unseen;
    statement.holds = found->kind == Answer::Kind::holds || statement.unseen;
    statement.too_wide = found->kind == Answer::Kind::too_wide;
    if (!statement.holds) statement.shown = found->shown;
  }
  findings.push_back(statement);
  return statement.holds || statement.too_wide;
}

/// Every probe in one storage type; `until_one`: up to the first statement that doesn't hold.
std::vector<ProbedStatement> ask_all(const ProbeTarget& target, bool until_one = false) {
  std::vector<ProbedStatement> findings;
  if (!add(kPlainCase, target, plain_case, findings)) {
    findings.back().broken_off = true;
    return findings;
  }
  const Answers plain = ask(target.backend, target.probe("seq=4x8 dim=4").problem());
  // Probes read single roundings off operands that are chosen to the last bit: rounded operands hide or feign them.
  if (!plain.refusal && states_products(plain.arithmetic)) {
    for (const ArithmeticProbe& probe : kProductProbes) {
      add(probe.name, target, probe.ask, findings);
      if (until_one && !findings.empty() && !findings.back().holds) break;
    }
    return findings;
  }
  const bool cut = !plain.refusal && plain.arithmetic.parts > 0;
  for (const ArithmeticProbe& probe : kProbes) {
    if (cut && probe.across_keys) continue;
    if (!add(probe.name, target, probe.ask, findings) && probe.structural) {
      findings.back().broken_off = true;
      break;
    }
    if (until_one && !findings.empty() && !findings.back().holds) break;
  }
  return findings;
}

bool all_hold(const std::vector<ProbedStatement>& findings) {
  return std::all_of(findings.begin(), findings.end(), [](const ProbedStatement& s) { return s.holds; });
}

/// One finding for all, where other statements in the place of one, two or three of them would leave nothing to say.
/// Most of what can't be so falls with the first probe.
std::optional<ProbedStatement> joint_finding(const ProbeTarget& target, const std::vector<ProbedStatement>& findings) {
  const Probe plain = target.probe("seq=4x8 dim=4");
  const Answers answers = ask(target.backend, plain.problem());
  if (answers.refusal) return std::nullopt;
  const Arithmetic& stated = answers.arithmetic;
  std::vector<Restatement> changes = restatements(stated);
  std::erase_if(changes, [](const Restatement& one) { return one.measured; });  // their own probes tell the number
  const auto explains = [&](const std::vector<const Restatement*>& chosen) {
    Restated restated(target.backend, [&](Arithmetic& a) {
      for (const Restatement* one : chosen) one->make(a);
    });
    if (fault_in(restated.arithmetic(plain.problem()))) return false;
    return all_hold(ask_all({restated, target.dtype, target.sizes}, true));
  };
  std::vector<const Restatement*> found;
  for (const Restatement& one : changes) {
    if (found.empty() && explains({&one})) found = {&one};
  }
  for (std::size_t n = 0; n < changes.size() && found.empty(); ++n) {
    for (std::size_t m = n + 1; m < changes.size() && found.empty(); ++m) {
      if (changes[n].probe == changes[m].probe) continue;
      if (explains({&changes[n], &changes[m]})) found = {&changes[n], &changes[m]};
    }
  }
  // Of three only those that belong to P: its type, what divides it, and the scores that it comes from.
  for (std::size_t n = 0; n < changes.size() && found.empty(); ++n) {
    for (std::size_t m = n + 1; changes[n].of_weights && m < changes.size() && found.empty(); ++m) {
      for (std::size_t k = m + 1; changes[m].of_weights && k < changes.size() && found.empty(); ++k) {
        const bool apart = changes[n].probe != changes[m].probe && changes[m].probe != changes[k].probe &&
                           changes[n].probe != changes[k].probe && changes[k].of_weights;
        if (apart && explains({&changes[n], &changes[m], &changes[k]})) {
          found = {&changes[n], &changes[m], &changes[k]};
        }
      }
    }
  }
  if (found.empty()) return std::nullopt;
  ProbedStatement joint{"", "", "", false};
  const auto add_to = [](std::string& list, const std::string& word) { list += (list.empty() ? "" : ", ") + word; };
  const std::vector<StatedField> said = stated_fields(stated);
  for (const Restatement* one : found) {
    joint.name += (joint.name.empty() ? "" : " and ") + std::string(one->probe);
    for (const StatedField& other : one->fields) {
      const auto now = std::find_if(said.begin(), said.end(), [&](const StatedField& f) { return f.key == other.key; });
      // A member that goes with another is named beside it.
      const std::string name = other.key == one->probe ? "" : std::string(other.key) + "=";
      add_to(joint.stated, name + now->value);
      add_to(joint.observed, name + other.value);
    }
  }
  joint.name += fmt::format(", {}", name_of(target.dtype));
  joint.dtype = target.dtype;
  const auto first = std::find_if(findings.begin(), findings.end(), [](const ProbedStatement& s) { return !s.holds; });
  joint.shown = first->shown;
  return joint;
}

/// In one storage type and size, several findings that have one explanation told as one.
void ask_and_join(const ProbeTarget& target, std::vector<ProbedStatement>& all) {
  std::vector<ProbedStatement> findings = ask_all(target);
  const auto complaint = [](const ProbedStatement& s) { return !s.holds; };
  const bool is_false = std::any_of(findings.begin(), findings.end(),
                                    [&](const ProbedStatement& s) { return complaint(s) && !s.too_wide; });
  const auto complaints = std::count_if(findings.begin(), findings.end(), complaint);
  // Probes that see through a false step were left out.
  const bool broken_off = is_false && findings.back().broken_off && findings.back().probe != kPlainCase;
  if (is_false && (complaints > 1 || broken_off)) {
    if (auto joint = joint_finding(target, findings)) {
      // Its own probe tells a statement that explains the others best.
      const auto same = std::find_if(findings.begin(), findings.end(),
                                     [&](const ProbedStatement& s) { return complaint(s) && s.name == joint->name; });
      if (same != findings.end()) joint = *same;
      std::erase_if(findings, complaint);
      findings.push_back(std::move(*joint));
    }
  }
  for (ProbedStatement& one : findings) all.push_back(std::move(one));
}

/// Sizes of a call that may be why its arithmetic is another one, smaller changes first.
std::vector<ProbeSizes> sizes_like(const Call& call) {
  ProbeSizes heads, batch, features;
  heads.heads = call.query_heads;
  heads.key_heads = call.key_heads;
  batch.batch = call.batch;
  features.key_dim = call.key_dim;
  features.value_dim = call.value_dim;
  ProbeSizes both = heads, all = heads;
  both.batch = all.batch = call.batch;
  all.key_dim = call.key_dim;
  all.value_dim = call.value_dim;
  return {heads, batch, features, both, all};
}

std::string text_of(const ProbeSizes& sizes) {
  std::string text = sizes.batch > 1 ? fmt::format(" batch={}", sizes.batch) : "";
  if (sizes.heads > 1) {
    text += fmt::format(" heads={}", sizes.heads);
    if (sizes.key_heads != sizes.heads) text += fmt::format("/{}", sizes.key_heads);
  }
  if (sizes.key_dim > 0) text += fmt::format(" dim={}", sizes.key_dim);
  if (sizes.key_dim > 0 && sizes.value_dim != sizes.key_dim) text += fmt::format("/{}", sizes.value_dim);
  return text;
}

/// What the backend says of a call; nothing where it refuses or throws, which is for verdicts to tell.
std::optional<Arithmetic> stated_for(Backend& backend, const Call& call) {
  try {
    const Answers answers = ask(backend, call);
    return answers.refusal ? std::nullopt : std::optional(answers.arithmetic);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}
/// The same of a probe in these sizes.
std::optional<Arithmetic> stated_in(Backend& backend, DType dtype, const ProbeSizes& sizes) {
  const ProbeTarget target{backend, dtype, sizes};
  return stated_for(backend, target.probe("seq=4x8 dim=4").problem());
}

}  // namespace

std::vector<ProbedStatement> probe_arithmetic(Backend& backend) { return probe_arithmetic_of(backend, {}); }

std::vector<ProbedStatement> probe_arithmetic_in(Backend& backend, DType dtype) { return ask_all({backend, dtype}); }

std::vector<ProbedStatement> probe_arithmetic_of(Backend& backend, const std::vector<Call>& calls) {
  std::vector<ProbedStatement> findings;
  for (DType dtype : kWideTypes) {
    ask_and_join({backend, dtype}, findings);
    std::vector<Arithmetic> target;
    if (auto plain = stated_in(backend, dtype, {})) target.push_back(*plain);
    const auto is_new = [&](const Arithmetic& a) { return std::find(target.begin(), target.end(), a) == target.end(); };
    for (const Call& call : calls) {
      if (call.dtype != dtype || !call.has_scores()) continue;
      const std::optional<Arithmetic> stated = stated_for(backend, call);
      if (!stated || !is_new(*stated)) continue;
      for (const ProbeSizes& sizes : sizes_like(call)) {
        if (stated_in(backend, dtype, sizes) != stated) continue;
        target.push_back(*stated);
        const std::size_t before = findings.size();
        ask_and_join({backend, dtype, sizes}, findings);
        for (std::size_t n = before; n < findings.size(); ++n) findings[n].name += text_of(sizes);
        break;
      }
    }
  }
  return findings;
}

std::vector<ProbedStatement> told_once(const std::vector<ProbedStatement>& findings) {
  struct Told {
    std::string subject;      ///< the name without its type, and which kind of complaint it is
    std::size_t types_end{};  ///< in the name
  };
  std::vector<ProbedStatement> list;
  std::vector<Told> told;
  for (const ProbedStatement& f : findings) {
    if (f.holds) continue;
    const std::string type = f.dtype ? ", " + std::string(name_of(*f.dtype)) : "";
    const std::size_t at = type.empty() ? std::string::npos : f.name.find(type);
    if (at == std::string::npos) {
      told.emplace_back();
      list.push_back(f);
      continue;
    }
    std::string subject = f.name;
    subject.replace(at, type.size(), f.too_wide ? "too wide" : "false");
    const auto same = std::find_if(told.begin(), told.end(), [&](const Told& one) { return one.subject == subject; });
    if (same == told.end()) {
      told.push_back({subject, at + type.size()});
      list.push_back(f);
    } else {  // the numbers of the first type stand for all
      list[static_cast<std::size_t>(same - told.begin())].name.insert(same->types_end, type);
      same->types_end += type.size();
    }
  }
  return list;
}

std::string ProbedStatement::verdict() const {
  if (refused) return "refused";
  if (unseen) return "cannot be seen by comparing outputs";
  const std::string where = shown.empty() ? "" : "; " + shown;
  if (too_wide) return "TOO WIDE: declares " + stated + ", shows " + observed + where;
  if (!holds) return "FALSE: observed " + observed + where;
  return stated == observed ? "holds" : "holds: observed " + observed;
}

}  // namespace attest
