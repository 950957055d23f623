// A backend's plan under time: every sample is a result.
//
// Before each run the inputs change in place and are uploaded. The last run of a sample and others, two on average, are
// downloaded into outputs full of junk and checked on random rows. Whether a run is looked at, and on which rows, is
// drawn from the system's randomness when it is over: nothing in memory tells before, and each of the others may be
// looked at as well. In one sample the last run has data that the backend has never seen, and every row is checked as
// `attest check` does. What is expected comes from a copy of the inputs: a plan that writes to its own gets no speed,
// and no other plan reads that. Some walks are probed as well: downloaded before the run, when the new result can't be
// there yet, and twice after it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "backends/backend.h"
#include "harness/comparison/accuracy.h"
#include "harness/speed/samples/step_samples.h"
#include "harness/speed/timing/cold_caches.h"
#include "harness/speed/timing/sample_rows.h"
#include "harness/speed/timing/timed_case.h"
#include "harness/speed/trust/no_speed.h"
#include "harness/speed/trust/processor_time.h"
#include "harness/speed/trust/thread_demand.h"

namespace attest {

class TimedPlan {
 public:
  /// Makes the plan and checks it with the case's own data. What it throws or gets wrong stands in wrong(). Both
  /// arguments outlive it.
  TimedPlan(Backend& backend, TimedCase& shared);

  const std::string& name() const { return name_; }
  /// Why there is no speed; empty as long as there is one.
  const NoSpeedReason& wrong() const { return wrong_; }
  double error_over_bound() const { return error_over_bound_; }
  /// Of the check before the timing, whose data are the case line's: the same in every benchmark.
  const std::optional<Spread>& ulps() const { return ulps_; }
  const StepSamples& steps() const { return steps_; }
  /// What the device's own clock says of the runs of this sample; 0 where it has none.
  double device_seconds() const { return device_; }

  /// Some walks before the first sample; returns how many runs a sample of `seconds` has, at most about a third of it
  /// spent on what is not run().
  std::int64_t warm_up(double seconds);

  /// A sample of `runs` runs begins. One of `in_full` such samples has its last run checked whole, none with 0; which
  /// one is drawn when that run's turn comes.
  void begin_sample(std::int64_t runs, int in_full);
  /// Whether the sample's last run was.
  bool checked_in_full() const { return checked_in_full_; }
  /// Uploads changed inputs and runs. Returns the seconds of run(), and 0 when something was wrong.
  double run_once();
  void end_sample();
  /// Waits until the threads of pools rest. A plan whose threads don't is given up, and wrong() says so.
  void rest();
  /// A checked run on changed inputs with caches that hold none of them.
  void run_cold(ColdCaches& caches);

  /// Holds the steps against what they may take; sets wrong(). A suspicion is looked at some more times first.
  void judge(const MachineLimits& limits);

 private:
  struct Execution {
    double upload = 0, run = 0, download = 0;
    double upload_cpu = 0, run_cpu = 0;  ///< of the process
    double download_cpu = 0;
    StepSamples::Cost fetched;  ///< from the run's return until its output was there
  };
  class WatchedSteps;
  enum class SampleCheck { away, by_chance, at_rows, with_probes };
  /// A download between upload and run: whether it gave anything else than the run before had left.
  struct Early {
    bool changed = false;
    double seconds = 0;
  };

  Execution execute(SampleCheck check, ColdCaches* evicted = nullptr);
  bool is_checked(SampleCheck check) const;
  void time_the_same_again(const Inputs& inputs, const Execution& execute);
  StepSamples::Cost fetch(GuardedOutputs& outputs, StepSamples::Cost& cost);
  void check_as_written(const Inputs& inputs);
  void check_inputs();
  void read_device_time();
  void execute_in_full(Execution& execute);
  void check_sample(const Inputs& inputs, const Early& early, bool probed, const Execution& execute);
  bool is_late(const Inputs& inputs);
  /// Whether a download a little later gives what the rows want.
  bool completed_later(const SampleRows& rows);
  NoSpeedReason describe_wrong(const std::string& what, const SampleRows& rows);
  template <class Step>
  double guarded(const Step& step);
  template <class Steps>
  void attempt(const Steps& steps);

  Backend& backend_;
  TimedCase& case_;
  std::string name_;
  NoSpeedReason wrong_;
  std::unique_ptr<Plan> plan_;
  Standard standard_;
  double error_over_bound_ = 0;
  std::optional<Spread> ulps_;
  StepSamples steps_;
  std::set<std::uint64_t> seen_;  ///< fingerprints of earlier results
  std::int64_t planned_ = 1, runs_ = 0, at_ = 0, sample_ = 0;
  int in_full_ = 0;
  bool checked_in_full_ = false, probed_ = false, suspected_ = false;
  double device_ = 0;
  double own_cpu_ = 0, wall_ = 0;     ///< of the sample's runs: of this thread, and their time
  std::optional<ProcessorTime> cpu_;  ///< of everybody
  std::map<int, ThreadTime> others_;  ///< when the sample began
};

}  // namespace attest
