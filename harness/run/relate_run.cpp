#include "harness/run/relate_run.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "harness/base/interrupted.h"
#include "harness/base/text.h"
#include "harness/cases/long_case.h"
#include "harness/cases/memory.h"

namespace attest {
namespace {

/// The same backends made for other numbers of threads.
std::vector<BackendSet> made_for_other_threads(const RelateRun& run) {
  std::vector<BackendSet> sets;
  const bool wanted =
      std::ranges::any_of(run.relations, [](const Relation* one) { return one->kind == RelationKind::threads; });
  if (!wanted) return sets;
  const int many = 2 * static_cast<int>(std::max(std::thread::hardware_concurrency(), 1u)) + 1;
  for (const int threads : {1, 2, 3, many}) {
    Context context = run.context;
    if (threads != std::exchange(context.threads, threads)) sets.push_back(run.make(context));
  }
  return sets;
}

}  // namespace

std::vector<const Relation*> chosen_relations(const std::string& names) {
  std::vector<const Relation*> chosen;
  for (const std::string& name : split_names(names, "relations")) {
    const Relation* one = &relation_named(name);
    if (std::ranges::find(chosen, one) == chosen.end()) chosen.push_back(one);
  }
  if (!chosen.empty()) return chosen;
  for (const Relation& one : relations()) chosen.push_back(&one);
  return chosen;
}

void RelateRun::require_memory() const {
  for (const CaseList& list : cases) {
    for (const Case& source : list.cases) check_memory(source.problem, source.label, 1);
  }
}

void RelateRun::run(const BackendSet& backends, const std::function<void(const RelationVerdict&)>& tell) const {
  const std::vector<BackendSet> others = made_for_other_threads(*this);
  for (const CaseList& list : cases) {
    for (const Case& source : list.cases) {
      if (interrupted) return;
      announce_if_long(source.problem, source.label);
      RelatedCase related(source, context.threads);
      for (const Relation* relation : relations) {
        if (!related.applies(*relation)) continue;
        for (Backend* backend : backends.all()) {
          if (interrupted) return;
          RelationVerdict verdict = related.judge(*relation, *backend, find_in_each(others, backend->identity().name));
          verdict.suite = list.suite;
          tell(verdict);
        }
      }
    }
  }
}

std::vector<std::string> names_of(const BackendSet& backends) {
  std::vector<std::string> names;
  for (const Backend* backend : backends.all()) names.push_back(backend->identity().name);
  return names;
}

}  // namespace attest
