// Cases and their relations on several backends: what `attest relate` and attest.relate of Python run.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "harness/backends/set/backend_set.h"
#include "harness/relate/related_case.h"
#include "harness/run/case_lists.h"

namespace attest {

/// The suite that is taken where no cases are named.
inline constexpr const char* kRelatedSuite = "relations";

/// Those of comma separated names, each once; all for "". Throws UserError.
std::vector<const Relation*> chosen_relations(const std::string& names);

struct RelateRun {
  std::vector<const Relation*> relations;
  std::vector<CaseList> cases;
  Context context;
  std::function<BackendSet(const Context&)> make;  ///< also for other numbers of threads

  /// Throws UserError where a case needs more memory than there is.
  void require_memory() const;
  /// Tells each verdict as it comes, of `backends`, which `make` made. Ends early when the user interrupts.
  void run(const BackendSet& backends, const std::function<void(const RelationVerdict&)>& tell) const;
};

/// What they are called, in their order.
std::vector<std::string> names_of(const BackendSet& backends);

}  // namespace attest
