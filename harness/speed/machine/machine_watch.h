// What the machine did besides the benchmark: other processes, a hypervisor, another frequency.
#pragma once

#include <string>
#include <vector>

#include "harness/base/stopwatch.h"

namespace attest {

/// Of one sample.
struct Disturbance {
  double steal = 0;      ///< processors that the hypervisor kept for others, on average
  double others = 0;     ///< processors that other processes used, on average
  double load = 0;       ///< the system's average over a minute at the end
  double megahertz = 0;  ///< of the first processor at the end; 0 where the system doesn't tell
  double slowdown = 1;   ///< of a fixed loop beside the sample, against the fastest so far
  double seconds = 0;    ///< that the sample took
  int busy_threads = 0;  ///< threads that another backend left running for ever
};

/// Why this sample doesn't count: the benchmark did not have the processors that it was given. Empty where it had. What
/// the clock ticks of the system can't tell from nothing is nothing.
std::string disturbed_by(const Disturbance& disturbance, int threads, int processors);

/// Watches samples, one after the other.
class MachineWatch {
 public:
  void begin();
  Disturbance end();
  /// Distance between the quartiles over the median of all rounds of the fixed loop.
  double calibration_spread() const;

 private:
  struct Ticks {
    double busy = 0, steal = 0;  ///< seconds of all processors
  };
  static Ticks ticks();
  double calibrate();

  Ticks ticks_;
  double cpu_ = 0, slowest_ = 0, fastest_ = 1e300;
  std::vector<double> rounds_;
  Stopwatch watch_;
};

}  // namespace attest
