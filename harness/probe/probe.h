// Finds out whether what a backend says of itself is true, by running small problems whose answers tell.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/backend.h"

namespace attest {

/// One statement: what the backend says, and what its answers show.
struct ProbedStatement {
  std::string name, stated, observed;
  bool holds;                       ///< false also when it is too wide
  bool refused = false;             ///< the backend refuses what would tell; no statement is false for that
  bool too_wide = false;            ///< more is declared than is shown, beyond the documented slack: a way to pass
  std::string shown = {};           ///< where it does not hold: the output that tells, and its case
  std::optional<DType> dtype = {};  ///< of an arithmetic: the storage type in which it was probed
  bool broken_off = false;          ///< other probes see through it and were left out
  std::string_view probe = {};      ///< of an arithmetic: which probe found it, a name without type and sizes
  bool unseen = false;              ///< answers are the same with it and without it; it holds

  /// "holds", "holds: observed ...", "FALSE: observed ...", "TOO WIDE: declares ..., shows ...", "refused" or
  /// "cannot be seen by comparing outputs".
  std::string verdict() const;
};

/// What the backend does where the field disagrees. A probe that the backend refuses is observed as "refused"; one that
/// throws, as "threw: ...".
std::vector<ProbedStatement> probe_conventions(Backend& backend);

/// The complaints among these findings, each once: what several storage types show alike is one of all of them.
std::vector<ProbedStatement> told_once(const std::vector<ProbedStatement>& findings);

/// How the backend rounds, in each storage type. A statement is false when the answers show something worse, and too
/// wide when they show something better by more than the slack that reference/ERROR_BOUNDS.md names: what is declared
/// enters a bound. Each probe takes for granted what the other statements say. What the backend refuses is left out,
/// and so is what can't be told apart beneath the other statements.
///
/// Where several statements don't hold in a type, and others in the place of up to three of them would leave nothing to
/// say, these are named together: one finding.
std::vector<ProbedStatement> probe_arithmetic(Backend& backend);

/// The same in one storage type, each finding by itself: none are named together.
std::vector<ProbedStatement> probe_arithmetic_in(Backend& backend, DType dtype);

/// As probe_arithmetic, and once more for every other arithmetic that the backend states for one of these calls, where
/// a probe of as many heads, batches or features gives it.
std::vector<ProbedStatement> probe_arithmetic_of(Backend& backend, const std::vector<Call>& calls);

}  // namespace attest
