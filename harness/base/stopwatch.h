// Seconds on the steady clock.
#pragma once

#include <chrono>

namespace attest {

/// Runs from when it is made.
class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// Runs `step` and returns its seconds.
template <class Step>
double timed(const Step& step) {
  const Stopwatch watch;
  step();
  return watch.seconds();
}

}  // namespace attest
