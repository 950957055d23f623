// A run of `check` as an object. It takes cases and backends, prepares cases ahead, resumes an earlier run, shrinks
// failures, and passes verdicts to reports. It knows no command line, prints nothing, and opens no file of results.
#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/backend.h"
#include "harness/backends/set/backend_set.h"
#include "harness/mpi/ranks.h"
#include "harness/probe/right_if.h"
#include "harness/report/earlier_run.h"
#include "harness/report/report.h"
#include "harness/run/case_lists.h"
#include "harness/run/failure_shrinking.h"
#include "harness/run/selection.h"
#include "harness/run/shared_cases.h"
#include "harness/run/thread_checks.h"
#include "harness/search/after_case.h"
#include "harness/verdict/known_mistakes.h"

namespace attest {

struct CheckSettings {
  std::string filter, shard;  ///< as Filter and Shard read them
  int threads = 1;            ///< of the harness's own work
  bool fail_fast = false;     ///< stop at the first failure
  bool isolated = false;      ///< the backends run in processes of their own: small cases side by side
  bool once = false;          ///< run every plan once, with nothing before, beside or after it
  std::uint64_t seed = 0;     ///< of the steps that plans take in a share of the cases
  std::string steps{};        ///< that they take in every case instead (harness/verdict/plan_life.h)
  bool bitwise = false;       ///< also ask whether right results have the same bits again
  bool shrink = true;         ///< make the first failures small
  /// What looking for statements under which a backend's failures would be right may take; 0: it isn't done.
  double explain_seconds = 5;
  /// When nothing new is begun: cases are left out then, and failures aren't looked into.
  std::optional<std::chrono::steady_clock::time_point> deadline{};
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
  std::vector<RightIfTold> right_if;  ///< statements under which all failing cases of a backend would be right
  bool still_running = false;         ///< a thread or rank is: the run must live until the process ends
  std::vector<Verdict> committed;     ///< of committed suites
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
  /// The same with the other ranks of a job, each of which has the same settings, cases and backends: each checks the
  /// next case when it is free, one at a time and with its own threads alone. Rank 0 alone has an earlier run and
  /// reports; what the others return tells only how they ended. Failures are made small by rank 0.
  CheckOutcome run(Ranks& ranks);
  /// What is known before the first verdict.
  RunInfo info() const;

 private:
  struct Task;
  struct Place {
    const CaseList* list;
    const Case* source;
  };

  bool stop() const;
  /// Until the deadline; where there is none, without end.
  double seconds_left() const;
  void begin();
  /// Verdicts of the earlier run on a case.
  std::vector<Verdict> remembered(std::size_t number) const;
  Task plan(std::size_t number) const;
  void prepare(Task& task, bool ahead) const;
  void check(Task& task, const CaseSink& sink) const;
  /// Whether there is something to do for a case, and doing it here and now.
  bool has_work(std::size_t number) const;
  void check_now(std::size_t number, const CaseSink& sink) const;
  /// Of a long case that begins.
  void announce(std::size_t number);
  /// Sets what is the case's, not the result's.
  void fill_in(Verdict& verdict, std::size_t number) const;
  void record(Verdict verdict);
  std::vector<std::size_t> costly_first() const;
  void put_in_order(std::vector<Verdict>& verdicts) const;
  std::vector<std::string> false_conventions() const;
  std::vector<std::string> false_statements() const;
  /// What backends with failing cases would have to state for all of them to be right.
  std::vector<RightIfTold> statements_that_explain() const;
  /// What workers do wrong when all cases are done: the last plans are given up.
  std::vector<std::string> late_faults() const;
  void count_wanted(RunInfo& info) const;
  /// A backend that has met no case; null where there is none to be had.
  std::unique_ptr<Backend> fresh_one(const std::string& name) const;
  const Case* case_named(const std::string& label) const;
  void note_met(const Case& source, const std::string& backend) const;
  /// A failure that an earlier case caused says so.
  void attribute_to_others(const PreparedCase& prepared, Verdict& verdict) const;
  CheckOutcome finish();

  CheckSettings settings_;
  std::vector<CaseList> cases_;
  const BackendSet& backends_;
  const std::vector<BackendSet>& other_threads_;
  mutable ThreadChecks thread_checks_;
  EarlierRun earlier_;
  std::vector<std::unique_ptr<Report>> reports_;
  Filter filter_;
  Shard shard_;
  std::vector<Place> places_;  ///< of all cases, by their number from 0
  std::vector<bool> own_;      ///< which of them are of this shard
  std::chrono::steady_clock::time_point started_;
  std::vector<Verdict> committed_;  ///< of committed suites
  /// What a backend has met, and what was run again for it.
  struct Met {
    EarlierCases cases;
    std::map<std::string, int> again;  ///< by cause
    int searches = 0;                  ///< for the earlier case
    double seconds = 0;                ///< that this took
  };
  mutable std::mutex met_mutex_;
  mutable std::map<std::string, Met> met_;  ///< by the name of the backend
  FailureShrinking failures_;
  Counts counts_;
  std::atomic<bool> failed_{false};        ///< and with fail_fast that is the end
  std::size_t wanted_ = 0;                 ///< verdicts, as many as an uninterrupted run has
  std::map<std::string, int> error_maps_;  ///< that were handed to the reports, by backend and cause
  mutable std::mutex keeping_;
  mutable std::map<std::pair<std::string, std::string>, WrongResult> kept_;  ///< by backend and case, until recorded
  mutable std::map<std::string, MistakeFinder> finders_;  ///< by backend, each used by one thread at a time
  std::map<std::string, WrongResults> wrong_;             ///< by backend
  std::vector<std::string> unprepared_;  ///< cases for which there was no memory in the end, with the reason
};

}  // namespace attest
