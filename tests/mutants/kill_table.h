// Which suite catches which wrong backend, and with which of its cases first.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "harness/cases/case.h"

namespace attest::mutants {

/// A backend under test for being caught; not owned.
struct Subject {
  std::string name, text;
  Backend* backend = nullptr;
};

struct Kill {
  std::size_t number = 0;  ///< of the case within its suite, from 1
  std::string line, reason;
};

/// What one suite did to some subjects.
struct SuiteKills {
  std::string suite;
  std::size_t cases = 0;
  double seconds = 0;
  std::map<std::string, Kill> kills;  ///< by the subject's name; those not in it survived
};

/// Runs the suite's cases in order, each against the subjects still alive; ends when none is left.
SuiteKills run_suite(const std::string& suite, const std::vector<Case>& cases, std::vector<Subject> subjects);

/// The same under each of rules(): by rule, then as above. `plain` is the correct kernel that gives the baselines;
/// where a rule accuses it, that rule's other accusations don't count.
std::map<std::string, SuiteKills> run_suite_by_rules(const std::string& suite, const std::vector<Case>& cases,
                                                     const std::vector<Subject>& subjects, Backend& plain);

}  // namespace attest::mutants
