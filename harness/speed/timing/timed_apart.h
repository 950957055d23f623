// A backend in a process of its own, timed from this one: what is timed is a request of all three steps, less the
// fastest request to do nothing; or, where its speed is about run() alone, a request for each step.
//
// Before each run every number of the inputs is drawn anew, and the outputs are filled with junk. Which runs are
// checked, on which rows, is drawn when they are over; one run of a benchmark has data that the backend has never seen
// and is checked whole. Expected values are computed here, from data that the worker can't reach.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/backends/isolation/apart.h"
#include "harness/speed/timing/cold_caches.h"
#include "harness/speed/timing/sample_rows.h"
#include "harness/speed/timing/timed.h"

namespace attest {

/// What is one request to the worker.
enum class OneRequest { call, step };
/// Of devices that this machine is known to have each step, but in a sandbox: strangers are timed by the call.
OneRequest one_request_of(const Backend& backend);

class TimedApart : public Timed {
 public:
  /// `backend` is isolated. The first three arguments outlive it.
  TimedApart(Backend& backend, TimedCase& shared, MachineWatch& watch, OneRequest one_request);

  const std::string& name() const override { return name_; }
  const NoSpeedReason& wrong() const override { return wrong_; }
  double error_over_bound() const override { return error_over_bound_; }
  const std::optional<Spread>& ulps() const override { return ulps_; }
  const StepSamples& steps() const override { return steps_; }
  double calibration_spread() const override { return watch_.calibration_spread(); }
  double change_seconds() const override { return shared_.changing().seconds_per_change(); }
  std::vector<std::string> lowered_pools() const override { return {}; }

  std::int64_t warm_up(double seconds) override;
  TakenSample sample(std::int64_t runs, int in_full) override;
  void run_cold(int threads) override;
  void judge(const MachineLimits& limits) override;

 private:
  enum class Look { away, at_rows, in_full };
  /// Seconds of the request, or of that for run(), alone; 0 when something was wrong.
  double run_once(Look look, ColdCaches* evicted = nullptr);
  double take_all_steps(ColdCaches* evicted);
  double take_each_step(ColdCaches* evicted);
  void look_before_run();
  ApartCost timed(ApartSteps steps);
  SampleRows rows_of(Look look);
  void compare(const SampleRows& rows, const char* when);
  template <class Steps>
  void attempt(const Steps& steps);

  Backend& backend_;
  TimedCase& shared_;
  MachineWatch& watch_;
  std::string name_;
  NoSpeedReason wrong_;
  std::unique_ptr<Plan> plan_;
  RunsApart* apart_ = nullptr;  ///< the same
  OneRequest one_request_;
  Standard standard_;
  double error_over_bound_ = 0;
  std::optional<Spread> ulps_;
  StepSamples steps_;
  double empty_ = 0;           ///< seconds of the fastest empty request
  double cpu_ = 0, wall_ = 0;  ///< of the sample's requests
};

}  // namespace attest
