// Files of verdicts put together: what several runs found, each of a part of the same cases, as one run.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "harness/report/check_results.h"
#include "harness/report/report.h"

namespace attest {

struct MergedRun {
  RunInfo info;                   ///< of all parts together; without conditions where these differ
  std::vector<Verdict> verdicts;  ///< each once, in the order of a run that was not split
  std::vector<ShrunkFailure> shrunk;
  std::vector<RightIfTold> right_if;     ///< what every part says in which the backend fails
  std::vector<std::string> problems;     ///< of the parts, and a sentence where verdicts are missing
  std::vector<std::string> doubles;      ///< verdicts that several files hold: which, and in which files
  std::vector<std::string> differences;  ///< in what builds and machines differ, a sentence each
  double seconds = 0;                    ///< of the parts together
};

/// Of two verdicts on one case and backend a failure stays, as when a run goes on from another. Throws UserError, in
/// one line that names the file, where parts are of different selections or don't say what they are a part of.
MergedRun merge_runs(std::vector<CheckResults> parts);

/// Tells the reports as a run would. Returns the sentences of those that could not be written.
std::vector<std::string> tell(const MergedRun& run, const std::vector<std::unique_ptr<Report>>& reports);

}  // namespace attest
