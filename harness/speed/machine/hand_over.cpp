#include "harness/speed/machine/hand_over.h"

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "harness/speed/machine/cpu_clock.h"
#include "harness/speed/machine/pinning.h"

namespace attest {
namespace {

/// Two threads in turn. Condition variables sleep at once, where semaphores of the library spin before.
struct Turns {
  std::mutex mutex;
  std::condition_variable changed;
  int turn = 0;

  void wait_and_pass_on(int own) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return turn == own; });
    turn = 1 - own;
    changed.notify_one();
  }
};

}  // namespace

double measure_hand_over() {
  constexpr int kRoundTrips = 32;
  const std::vector<int> processors = own_processors();
  Turns turns;
  double seconds[2] = {};
  const auto take_turns = [&](int own) {
    if (processors.size() > 1) pin_to({processors[static_cast<std::size_t>(own)]});
    const double before = thread_cpu_seconds();
    for (int n = 0; n < kRoundTrips; ++n) turns.wait_and_pass_on(own);
    seconds[own] = thread_cpu_seconds() - before;
  };
  { const std::jthread first(take_turns, 0), second(take_turns, 1); }
  return (seconds[0] + seconds[1]) / kRoundTrips;
}

}  // namespace attest
