// The cases of a run handed out to the ranks of a job: the next to whoever is free, rank 0 included, which gathers what
// they find. Nothing is handed to a rank before what it found last has reached rank 0.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "harness/mpi/ranks.h"
#include "harness/verdict/verdict.h"

namespace attest {

/// Who is told what comes out of a case.
struct CaseSink {
  std::function<void(Verdict)> verdict;
  std::function<void(std::string)> problem;  ///< with the run as a whole
};

struct SharedCases {
  /// Of every rank: checks the case of this number. On rank 0 it runs in a thread of its own, and may go on when
  /// share_cases() has returned false.
  std::function<void(std::size_t number, const CaseSink& sink)> check;
  /// Of every rank above 0: what it has to complain about in the end.
  std::function<std::vector<std::string>()> exit_messages;

  // Of rank 0, all called in its calling thread.
  std::vector<std::size_t> order;            ///< numbers of the cases, the first to be handed out first
  std::function<void(std::size_t)> started;  ///< the case was handed out
  CaseSink sink;                             ///< of all ranks
  std::function<bool()> stop;                ///< nothing more is handed out
};

/// Returns when all cases were checked; after an interrupt when each rank came to the end of its case, but on rank 0 no
/// later than launchers leave time for. False: on rank 0 that somebody is still at work, and what `check` uses must
/// live until the process ends; elsewhere that rank 0 is gone. Verdicts carry numbers of cases, as CheckRun sets them;
/// storage type and call line are not sent.
bool share_cases(Ranks& ranks, const SharedCases& cases);

}  // namespace attest
