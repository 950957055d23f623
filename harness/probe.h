// Finds out what a backend does where the field disagrees, by running small problems whose answers tell.
#pragma once

#include <string>
#include <vector>

#include "backends/backend.h"

namespace attest {

/// One row of the table: what the backend says, and what its answers show.
struct ConventionFinding {
  std::string name, stated, observed;
  bool holds() const { return stated == observed; }
};

/// The fields of Conventions in order, as name and value.
std::vector<std::pair<std::string, std::string>> convention_fields(const Conventions& conventions);

/// Probes every field. A probe that the backend refuses is observed as "refused"; one that throws, as "threw: ...".
std::vector<ConventionFinding> probe_conventions(Backend& backend);

}  // namespace attest
