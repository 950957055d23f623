#include "harness/relate/related_case.h"

#include <fmt/format.h>

#include <utility>

#include "backends/refusal.h"
#include "harness/base/backend_source.h"
#include "harness/base/crash_message.h"
#include "harness/base/user_error.h"
#include "harness/cases/memory.h"
#include "harness/comparison/worst_element.h"
#include "harness/relate/merged_parts.h"
#include "harness/relate/promise.h"
#include "harness/verdict/plan_execution.h"
#include "harness/verdict/prepared_case.h"
#include "reference/options/case_line.h"

namespace attest {
namespace {

constexpr int kRepetitions = 5;

/// A result with nothing left unwritten and nothing written outside it. Throws CaseFault.
void require_written(const GuardedOutputs& outputs) {
  const OutputFault fault = outputs.inspect();
  if (!fault.empty()) throw CaseFault(Status::fail, fault.cause, fault.reason);
}

/// Why the backend takes no part in a relation with this call; its own refusal first.
std::optional<std::string> reason_against(const Backend& backend, const Call& call) {
  if (const auto refusal = refusal_of(backend, call))
    return refusal->reason.empty() ? "refused without a reason" : refusal->reason;
  const std::string align = backend.conventions().align;
  const bool matters = call.uses_diagonal() && call.past == 0 && call.query_length != call.key_length;
  if (matters && align != Conventions().align && align != name_of(call.align))
    return "the backend's diagonal is always " + align;
  return std::nullopt;
}

/// The command that judges this relation alone; for an object of Python that lives here, the call.
std::string repro_of(const Relation& relation, const Case& source, Identity backend) {
  const std::string name(relation.name);
  if (!backend.plugin.starts_with(kObjectHere))
    return repro_with("--relation " + name, source, repro_command(source, backend, "relate"));
  backend.plugin += ", relations='" + name + "'";
  return repro_command(source, backend, "relate");
}

std::string element_text(const Difference& one) {
  return fmt::format("{} = {:.9g} in the whole, {:.9g} here; they differ by {:.3g}, allowed is {:.3g}",
                     place_text(row_of(one.result).name, one.at), one.whole, one.other, one.whole - one.other,
                     one.allowed);
}

void judge_differences(RelationVerdict& verdict) {
  const Differences& found = verdict.found;
  if (found.outside == 0 && found.differing > 0 && verdict.promised) {
    verdict.status = RelationStatus::fail;
    verdict.reason = fmt::format("the same bits are promised, and {} of {} elements have others; the first: {}",
                                 found.differing, found.elements, element_text(*found.first));
  } else if (found.differing == 0) {
    verdict.status = RelationStatus::bits;
  } else if (found.outside == 0) {
    verdict.status = RelationStatus::bound;
  } else {
    verdict.status = RelationStatus::fail;
    verdict.reason = fmt::format("{} of {} elements are outside the sum of both bounds; the first: {}", found.outside,
                                 found.elements, element_text(*found.first_outside));
  }
}

}  // namespace

/// A call that is derived from the case's, with its data.
struct RelatedCase::OtherCall {
  OtherCall(Arrangement part, const Problem& whole, const Inputs& inputs)
      : arrangement(std::move(part)),
        made(inputs_of_part(arrangement, whole.call, inputs)),
        views(made.views()),
        problem{arrangement.call, whole.data} {}

  const BoundedResults& bounds_of(const Backend& backend, int threads) {
    auto& known = bounds[&backend];
    if (!known) known = std::make_unique<BoundedResults>(backend, problem, views, threads);
    return *known;
  }

  Arrangement arrangement;
  CaseInputs made;
  Inputs views;
  Problem problem;
  std::map<const Backend*, std::unique_ptr<BoundedResults>> bounds{};
};

RelatedCase::RelatedCase(const Case& source, int threads) : source_(source), threads_(threads) {
  check_memory(source.problem, source.label);
  if (!source.inputs) made_ = make_inputs(source.problem, threads);
  views_ = (source.inputs ? *source.inputs : made_).views();
}

RelatedCase::~RelatedCase() = default;

const std::vector<std::unique_ptr<RelatedCase::OtherCall>>& RelatedCase::other_calls(const Relation& relation) {
  const auto [found, fresh] = calls_.try_emplace(relation.name);
  if (fresh && relation.derive) {
    for (Arrangement& part : relation.derive(source_.problem, views_))
      found->second.push_back(std::make_unique<OtherCall>(std::move(part), source_.problem, views_));
  }
  return found->second;
}

bool RelatedCase::applies(const Relation& relation) { return !relation.derive || !other_calls(relation).empty(); }

const GuardedOutputs& RelatedCase::result_of(Backend& backend) {
  auto& known = results_[&backend];
  if (!known) {
    auto outputs = std::make_unique<GuardedOutputs>(source_.problem);
    walk_once(backend, source_.problem, views_, *outputs);
    require_written(*outputs);
    known = std::move(outputs);
  }
  return *known;
}

MakeBounds RelatedCase::bounds_of_whole(const Backend& backend) {
  return [this, &backend]() -> const BoundedResults& {
    auto& known = bounds_[&backend];
    if (!known) known = std::make_unique<BoundedResults>(backend, source_.problem, views_, threads_);
    return *known;
  };
}

void RelatedCase::compare_calls(const Relation& relation, Backend& backend, RelationVerdict& verdict) {
  const GuardedOutputs& whole = result_of(backend);
  std::vector<std::unique_ptr<GuardedOutputs>> results;
  std::vector<KeyPart> parts;
  std::string refusal;
  for (const auto& call : other_calls(relation)) {
    const auto name_call = [&] {
      verdict.other_call = print_case(call->problem);
      verdict.about = call->arrangement.about;
    };
    if (const auto reason = reason_against(backend, call->problem)) {
      if (refusal.empty()) {
        name_call();
        refusal = *reason;
      }
      if (relation.kind == RelationKind::parts) break;
      continue;
    }
    const std::string before_call = verdict.other_call, before_about = verdict.about;
    name_call();
    GuardedOutputs& outputs = *results.emplace_back(std::make_unique<GuardedOutputs>(call->problem));
    walk_once(backend, call->problem, call->views, outputs);
    require_written(outputs);
    ++verdict.calls;
    const MakeBounds bounds = [&backend, this, one = call.get()]() -> const BoundedResults& {
      return one->bounds_of(backend, threads_);
    };
    if (relation.kind == RelationKind::parts) {
      parts.push_back({call->arrangement, outputs, bounds});
      continue;
    }
    const bool failed = verdict.found.outside > 0;
    const std::optional<Difference> largest = verdict.found.largest;
    verdict.found.add(
        differences(source_.problem, whole, call->arrangement, outputs, bounds_of_whole(backend), bounds));
    // The call of the element that is shown stays.
    const bool is_shown =
        !failed && (verdict.found.outside > 0 || !largest || verdict.found.largest->fraction() > largest->fraction());
    if (!is_shown && verdict.calls > 1) {
      verdict.other_call = before_call;
      verdict.about = before_about;
    }
    results.pop_back();
  }
  const bool is_incomplete = relation.kind == RelationKind::parts && !refusal.empty();
  if (verdict.calls == 0 || is_incomplete) {
    verdict.reason = refusal;
    return;
  }
  if (relation.kind == RelationKind::parts)
    verdict.found =
        differences_of_merged(source_.problem, whole, parts, bounds_of_whole(backend), backend.conventions().lse_base);
  judge_differences(verdict);
}

void RelatedCase::compare_runs(Backend& backend, std::span<Backend* const> others, RelationVerdict& verdict) {
  const GuardedOutputs& first = result_of(backend);
  const Arrangement same = Arrangement::same(source_.problem);
  const auto compare = [&](Plan& plan) {
    GuardedOutputs outputs(source_.problem);
    execute(plan, views_, &outputs);
    require_written(outputs);
    ++verdict.calls;
    verdict.found.add(
        differences(source_.problem, first, same, outputs, bounds_of_whole(backend), bounds_of_whole(backend)));
  };
  verdict.other_call = source_.label;
  if (others.empty()) {
    const std::unique_ptr<Plan> plan = make_plan(backend, source_.problem);
    for (int run = 0; run < kRepetitions; ++run) compare(*plan);
  }
  for (Backend* other : others) compare(*make_plan(*other, source_.problem));
  judge_differences(verdict);
}

RelationVerdict RelatedCase::judge(const Relation& relation, Backend& backend, std::span<Backend* const> others) {
  RelationVerdict verdict;
  const Identity identity = backend.identity();
  verdict.case_line = source_.label;
  verdict.backend = identity.name;
  verdict.relation = relation.name;
  verdict.repro = repro_of(relation, source_, identity);
  const CrashContext work(identity.name, source_.label);
  try {
    verdict.promised = promises_bits(backend.conventions(), relation.name);
    if (const auto reason = reason_against(backend, source_.problem)) {
      verdict.reason = *reason;
    } else if (relation.kind == RelationKind::threads && others.empty()) {
      verdict.reason = "the backend could not be made for another number of threads";
    } else if (relation.derive) {
      compare_calls(relation, backend, verdict);
    } else {
      compare_runs(backend, relation.kind == RelationKind::threads ? others : std::span<Backend* const>(), verdict);
    }
  } catch (const UnusableBackend&) {
    throw;
  } catch (const std::exception& error) {
    verdict.status = RelationStatus::fail;
    verdict.reason = error.what();
  } catch (...) {
    verdict.status = RelationStatus::fail;
    verdict.reason = "threw something that is no std::exception";
  }
  return verdict;
}

}  // namespace attest
