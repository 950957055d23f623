// What a benchmark asks of a backend on a case, wherever that runs: in this process, or in one of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/comparison/accuracy.h"
#include "harness/speed/machine/machine_watch.h"
#include "harness/speed/machine/thread_pools.h"
#include "harness/speed/samples/step_samples.h"
#include "harness/speed/timing/bench.h"
#include "harness/speed/timing/timed_plan.h"
#include "harness/speed/trust/no_speed.h"

namespace attest {

/// One sample of some runs.
struct TakenSample {
  double seconds = 0;  ///< of run(), all runs together
  double cpu = 0;      ///< of the calling thread's processor time, with what lies between the runs
  double device = 0;   ///< by the device's own clock; 0 where it has none
  Disturbance disturbance;
  bool checked_in_full = false;  ///< whether its last run was checked whole
};

class Timed {
 public:
  virtual ~Timed() = default;
  virtual const std::string& name() const = 0;
  /// Why there is no speed; empty as long as there is one.
  virtual const NoSpeedReason& wrong() const = 0;
  virtual double error_over_bound() const = 0;
  virtual const std::optional<Spread>& ulps() const = 0;
  virtual const StepSamples& steps() const = 0;
  virtual double calibration_spread() const = 0;
  /// That changing one set of inputs took, outside of what is timed.
  virtual double change_seconds() const = 0;
  /// Of libraries that had more threads than were given, as LoadedPools tells them.
  virtual std::vector<std::string> lowered_pools() const = 0;

  /// As TimedPlan has them.
  virtual std::int64_t warm_up(double seconds) = 0;
  virtual TakenSample sample(std::int64_t runs, int in_full) = 0;
  virtual void run_cold(int threads) = 0;
  virtual void judge(const MachineLimits& limits) = 0;
};

/// In this process. The arguments outlive it.
class TimedHere : public Timed {
 public:
  TimedHere(Backend& backend, TimedCase& shared, MachineWatch& watch, LoadedPools& pools)
      : shared_(shared), plan_(backend, shared), watch_(watch), pools_(pools) {
    pools_.look_again();  // at what the first run has loaded
  }
  const std::string& name() const override { return plan_.name(); }
  const NoSpeedReason& wrong() const override { return plan_.wrong(); }
  double error_over_bound() const override { return plan_.error_over_bound(); }
  const std::optional<Spread>& ulps() const override { return plan_.ulps(); }
  const StepSamples& steps() const override { return plan_.steps(); }
  double calibration_spread() const override { return watch_.calibration_spread(); }
  double change_seconds() const override { return shared_.changing().seconds_per_change(); }
  std::vector<std::string> lowered_pools() const override { return pools_.lowered(); }
  std::int64_t warm_up(double seconds) override { return plan_.warm_up(seconds); }
  TakenSample sample(std::int64_t runs, int in_full) override;
  void run_cold(int threads) override;
  void judge(const MachineLimits& limits) override { plan_.judge(limits); }

 private:
  TimedCase& shared_;
  TimedPlan plan_;
  MachineWatch& watch_;
  LoadedPools& pools_;
};

/// Before the plans of a case are made: what others have left running is nobody's who could be named, and processes
/// that a backend starts stay countable.
void rest_before_timing();

}  // namespace attest
