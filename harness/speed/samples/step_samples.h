// What was measured of one plan's steps besides the samples of run().
#pragma once

#include <vector>

#include "harness/base/statistics.h"

namespace attest {

/// Seconds. Lists hold one entry for each time that it was measured.
struct StepSamples {
  double prepare = 0;
  double first_run = 0;    ///< the plan's first: with what it compiles, plans or touches first
  double memory_peak = 0;  ///< bytes that the process took more while the plan was made and ran first
  double workspace = 0;    ///< bytes that the plan says it holds
  std::vector<double> upload, run, download;
  std::vector<double> cold;  ///< run() with evicted caches, where asked for
  /// By the clock on the wall and by the process's processor time. A neighbour delays the one and not the other.
  struct Cost {
    double seconds = 0, cpu = 0;
    double since = 0;  ///< from the begin of the run before it, where there was one
  };
  /// The first download after a run, and how much more it took than a second one: what it waited for, or computed. Of
  /// walks without a download before the run, by which a plan could tell that it is looked at.
  std::vector<Cost> fetched, waited;
  std::vector<Cost> uploaded;  ///< each upload once more, with what it computed
  struct Repeat {
    Cost fresh, same;
  };
  std::vector<Repeat> repeated;    ///< run() on new data, and once more on the same; short ones added up
  std::vector<double> threads;     ///< of a sample: how many worked, or wanted to, during run()
  std::vector<double> processors;  ///< of a sample: processor time of everybody in run() over that of the clock
  std::vector<double> cpu_after;   ///< processor time of other threads in a while after a run, without a call
  std::vector<double> after;       ///< and how long that while was
};

/// What the machine and the call say that the steps may take.
struct MachineLimits {
  double operations = 0;  ///< useful ones of one run
  double peak = 0;        ///< operations a second of the device for this type; 0 where nobody measured them
  double bytes_in = 0, bytes_out = 0;
  double copied_per_second = 0;  ///< bytes into fresh memory; 0 where not measured
  bool host = true;              ///< the device is the processor, or one that nobody knows: its work is processor time
  int threads = 1;               ///< given to the backend
  double converted_per_second = 0;  ///< bytes, one element after the other; 0 where not measured
  double hand_over = 0;  ///< seconds of processor time to wake a sleeping thread and be woken; 0 where not measured
};

}  // namespace attest
