// A backend timed in a process of its own: the end in this process.
//
// Samples of several backends take turns as they do in one process: each is one request to one worker, and the others
// wait meanwhile. A worker that crashes, takes too long or takes too much memory costs its own backend the speed.
#pragma once

#include <cstdint>
#include <string>

#include "harness/backends/isolation/messages.h"
#include "harness/cases/case.h"
#include "harness/speed/timing/timed.h"

namespace attest {

class TimedInWorker : public Timed {
 public:
  /// `backend` is isolated, and `seed` draws the data of its samples. Both arguments outlive it.
  TimedInWorker(Backend& backend, const Case& source, std::uint64_t seed);
  ~TimedInWorker() override;
  TimedInWorker(const TimedInWorker&) = delete;
  TimedInWorker& operator=(const TimedInWorker&) = delete;

  const std::string& name() const override { return name_; }
  const NoSpeedReason& wrong() const override { return wrong_; }
  double error_over_bound() const override { return error_over_bound_; }
  const std::optional<Spread>& ulps() const override { return ulps_; }
  const StepSamples& steps() const override { return steps_; }
  double calibration_spread() const override { return calibration_spread_; }
  double change_seconds() const override { return change_seconds_; }
  std::vector<std::string> lowered_pools() const override { return lowered_pools_; }
  /// Nothing where the worker ended before it could tell.
  const std::optional<TimedFacts>& facts() const { return facts_; }

  std::int64_t warm_up(double seconds) override;
  TakenSample sample(std::int64_t runs, int in_full) override;
  void run_cold(int threads) override;
  void judge(const MachineLimits& limits) override;

 private:
  /// The reply, and an empty one where there is none: then wrong() says why.
  Json ask(const Json& request);

  Backend& backend_;
  const Case& source_;
  std::string name_;
  NoSpeedReason wrong_;
  double error_over_bound_ = 0, calibration_spread_ = 0, change_seconds_ = 0;
  std::vector<std::string> lowered_pools_;
  std::optional<Spread> ulps_;
  StepSamples steps_;
  std::optional<TimedFacts> facts_;
};

}  // namespace attest
