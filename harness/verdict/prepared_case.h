// One case made ready for its backends: inputs, reference and bounds; and the verdict on each.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "harness/cases/case.h"
#include "harness/comparison/expectation.h"
#include "harness/verdict/verdict.h"

namespace attest {

/// The arithmetics that a case's results may come from: of the backends that take it, and of a file's own results.
std::vector<Producer> producers_of(const Case& source, const std::vector<Backend*>& backends);

/// A case with its data in memory and the expectation for a set of backends.
class PreparedCase {
 public:
  /// Throws UserError when the machine has too little memory.
  PreparedCase(const Case& source, const std::vector<Backend*>& backends, int threads);
  /// With what producers_of gave; talks to no backend.
  PreparedCase(const Case& source, const std::vector<Producer>& producers, int threads);

  const Case& source() const { return source_; }
  const Problem& problem() const { return source_.problem; }
  const Inputs& inputs() const { return views_; }
  const Expectation& expectation() const { return expectation_; }

  /// Runs the backend on this case and compares. Never throws what a backend throws: that is a failed verdict.
  /// With `plan`, made by the backend for this problem, that plan is walked instead of a new one.
  Verdict check(Backend& backend, Plan* plan = nullptr) const;

  /// For a file that holds results: the reference against them. The "backend" is named reference.
  Verdict check_reference() const;
  bool has_golden() const { return source_.golden.has_value(); }

 private:
  void check_golden(Backend& backend, Verdict& verdict) const;

  const Case& source_;
  CaseInputs made_;
  Inputs views_;
  Expectation expectation_;
};

/// How the command line repeats this verdict.
std::string repro_command(const Case& source, const std::string& backend);

}  // namespace attest
