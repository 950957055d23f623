// A run of `check` as an object: which cases on which backends, in which order, looking ahead, going on from an earlier
// run, making failures small, and telling reports. It knows no command line, prints nothing and opens no file of
// results.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "harness/isolation/backend_set.h"
#include "harness/report/earlier_run.h"
#include "harness/report/report.h"
#include "harness/run/case_lists.h"
#include "harness/run/failure_shrinking.h"
#include "harness/run/selection.h"

namespace attest {

struct CheckSettings {
  std::string filter, shard;            ///< as Filter and Shard read them
  int threads = 1;                      ///< of the harness's own work
  bool fail_fast = false;               ///< stop at the first failure
  bool isolated = false;                ///< the backends run in processes of their own: small cases side by side
  bool once = false;                    ///< run every plan once, with nothing before, beside or after it
  bool bitwise = false;                 ///< also ask whether right results have the same bits again
  bool shrink = true;                   ///< make the first failures small
  bool compare_refusals = true;         ///< hold those of committed suites against the lists
  std::filesystem::path shrunk_folder;  ///< for the smallest files of failing files; empty: these are left as they are
  std::vector<std::string> command;     ///< for the reports' header
  Conditions conditions;                ///< for the reports' header: what `earlier` was read with
};

/// What a run came to.
struct CheckOutcome {
  Counts counts;
  std::vector<std::string> problems;   ///< of the run as a whole: unlisted refusals, statements that don't hold
  std::vector<std::string> notes;      ///< what could not be made smaller, and why
  std::size_t unshrunk_files = 0;      ///< failing files that were left as they are for want of a folder
  std::vector<std::string> unwritten;  ///< reports that could not be written, a sentence each
  bool interrupted = false;
  std::vector<Verdict> committed;  ///< of committed suites
};

class CheckRun {
 public:
  /// `backends` outlive the run. `other_threads`: the same backends made for other numbers of threads, the last for
  /// more than there are cores, with which some right results are computed again; for `bitwise` all of them are used.
  /// Verdicts of `earlier` are not found again. Throws UserError for a filter or shard that can't be read.
  CheckRun(CheckSettings settings, std::vector<CaseList> cases, const BackendSet& backends,
           const std::vector<BackendSet>& other_threads, EarlierRun earlier,
           std::vector<std::unique_ptr<Report>> reports);
  ~CheckRun();

  /// Once. Ends early at an interrupt; the reports are complete either way. Verdicts of `earlier` that the run does not
  /// come to are handed to the reports, too.
  CheckOutcome run();

 private:
  struct Task;

  bool stop() const;
  void begin();
  Task plan(const CaseList& list, const Case& source, std::size_t number) const;
  void check(Task& task);
  void record(const Task& task, Backend* backend, Verdict verdict);
  std::vector<std::string> false_statements() const;
  /// What workers do wrong when all cases are done: the last plans are given up.
  std::vector<std::string> late_faults() const;
  void count_wanted(RunInfo& info) const;
  CheckOutcome finish();

  CheckSettings settings_;
  std::vector<CaseList> cases_;
  const BackendSet& backends_;
  const std::vector<BackendSet>& other_threads_;
  EarlierRun earlier_;
  std::vector<std::unique_ptr<Report>> reports_;
  Filter filter_;
  Shard shard_;
  std::vector<bool> own_;  ///< which of all cases are of this shard
  std::chrono::steady_clock::time_point started_;
  std::vector<Verdict> committed_;  ///< of committed suites
  FailureShrinking failures_;
  Counts counts_;
  std::size_t wanted_ = 0;                 ///< verdicts, as many as an uninterrupted run has
  std::map<std::string, int> error_maps_;  ///< that were handed to the reports, by backend and cause
  std::vector<std::string> unprepared_;    ///< cases for which there was no memory in the end, with the reason
};

}  // namespace attest
