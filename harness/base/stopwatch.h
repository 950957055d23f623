// Seconds on the steady clock.
#pragma once

#include "harness/base/raw_clock.h"

namespace attest {

/// Runs from when it is made.
class Stopwatch {
 public:
  double seconds() const { return steady_seconds() - start_; }

 private:
  double start_ = steady_seconds();
};

/// Runs `step` and returns its seconds.
template <class Step>
double timed(const Step& step) {
  const Stopwatch watch;
  step();
  return watch.seconds();
}

}  // namespace attest
