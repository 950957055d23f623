// A backend in a sandbox, timed from this process: what is timed is a request of all three steps, less the fastest
// request to do nothing.
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
#include "harness/speed/timing/timed.h"

namespace attest {

class TimedApart : public Timed {
 public:
  /// `backend` is isolated. All arguments outlive it.
  TimedApart(Backend& backend, TimedCase& shared, MachineWatch& watch);

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
  /// Seconds of the request alone; 0 when something was wrong.
  double run_once(Look look, const std::function<void()>& before_waking = {});
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
  Producer producer_;
  double error_over_bound_ = 0;
  std::optional<Spread> ulps_;
  StepSamples steps_;
  double empty_ = 0;           ///< seconds of the fastest empty request
  double cpu_ = 0, wall_ = 0;  ///< of the sample's requests
};

}  // namespace attest
