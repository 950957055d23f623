// Whether the other threads of this process rest: what a backend leaves running takes processors from whoever is timed
// next.
//
// The threads of a pool wait in a loop for a while before they sleep (up to 200 ms in LLVM's OpenMP), so every sample
// begins after they have. Those that never rest are told apart from then on, so that they cost their backend its speed
// and nobody else.
#pragma once

#include <map>
#include <string>

namespace attest {

class IdleThreads {
 public:
  /// Seconds that a pool may wait in a loop before it sleeps.
  static constexpr double kLongest = 0.5;

  /// Waits until all threads rest but the caller's and those known to be busy_threads. Returns whether they did in
  /// time.
  bool wait_until_idle() const;
  /// From now on the threads at work are known to be busy_threads, left by `owner`. Returns how many are new.
  int attribute(const std::string& owner);
  /// Those of them that rest by now, or have ended, are no longer known.
  void look_again();

  /// By their numbers, whose they are.
  const std::map<int, std::string>& busy_threads() const { return busy_; }
  bool left_by(const std::string& owner) const;

 private:
  std::map<int, std::string> busy_;
};

/// Those of this process.
IdleThreads& idle_threads();

}  // namespace attest
