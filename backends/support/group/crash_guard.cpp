#include "backends/support/group/crash_guard.h"

#include <pthread.h>
#include <setjmp.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <string>

#include "backends/backend.h"

namespace attest::support {
namespace {

constexpr std::array kFatal = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
constexpr int kWake = SIGUSR2;  ///< another thread crashed

sigjmp_buf way_out;
pthread_t guarded_thread;
std::atomic<int> crashed_with{0};
std::atomic<bool> inside{false}, pool_lost{false}, is_undisturbed{false};

const char* name_of_signal(int number) {
  switch (number) {
    case SIGSEGV: return "Segmentation fault";
    case SIGBUS: return "Bus error";
    case SIGFPE: return "Floating point exception";
    case SIGILL: return "Illegal instruction";
    default: return "Aborted";
  }
}

extern "C" void on_crash(int number) {
  if (pthread_equal(pthread_self(), guarded_thread)) {
    if (number == kWake && (is_undisturbed || !inside)) return;
    if (number != kWake && !inside) {  // not what is guarded: as if there were no handler
      std::signal(number, SIG_DFL);
      std::raise(number);
      return;
    }
    if (number != kWake) crashed_with = number;
    siglongjmp(way_out, 1);
  }
  crashed_with = number;
  pool_lost = true;
  pthread_kill(guarded_thread, kWake);
  for (;;) pause();  // to go on would crash again
}

/// Handlers while it lives; for good once threads of a pool may be left in the midst of their work.
class Handlers {
 public:
  Handlers() {
    struct sigaction action {};
    action.sa_handler = on_crash;
    sigemptyset(&action.sa_mask);
    for (std::size_t n = 0; n < kFatal.size(); ++n) sigaction(kFatal[n], &action, &before_[n]);
    sigaction(kWake, &action, &before_.back());
  }
  ~Handlers() {
    inside = false;
    if (pool_lost) return;
    for (std::size_t n = 0; n < kFatal.size(); ++n) sigaction(kFatal[n], &before_[n], nullptr);
    sigaction(kWake, &before_.back(), nullptr);
  }
  Handlers(const Handlers&) = delete;
  Handlers& operator=(const Handlers&) = delete;

 private:
  std::array<struct sigaction, kFatal.size() + 1> before_{};
};

}  // namespace

void guarded(bool in_threads, const std::function<void()>& work) {
  if (pool_lost) throw BackendError("computes no more since a thread of it crashed");
  guarded_thread = pthread_self();
  const Handlers handlers;
  if (sigsetjmp(way_out, 1) == 0) {
    inside = true;
    work();
    return;
  }
  is_undisturbed = false;
  if (in_threads) pool_lost = true;
  throw BackendError(std::string("crashed: ") + name_of_signal(crashed_with));
}

void undisturbed(const std::function<void()>& piece) {
  is_undisturbed = true;
  piece();
  is_undisturbed = false;
  if (pool_lost) siglongjmp(way_out, 1);
}

}  // namespace attest::support
