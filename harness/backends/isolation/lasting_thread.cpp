#include "harness/backends/isolation/lasting_thread.h"

#include <sched.h>
#include <unistd.h>

#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

namespace attest {
namespace {

class LastingThread {
 public:
  LastingThread() : owner_(getpid()) {
    std::thread([this] { serve(); }).detach();
  }

  /// A process that was forked off has a copy of this, and not the thread.
  bool is_here() const { return owner_ == getpid(); }

  void run(const std::function<void()>& work) {
    cpu_set_t processors;
    const bool known = sched_getaffinity(0, sizeof processors, &processors) == 0;
    std::exception_ptr failure;
    std::unique_lock lock(mutex_);
    wanted_ = [&] {
      if (known) sched_setaffinity(0, sizeof processors, &processors);
      try {
        work();
      } catch (...) {
        failure = std::current_exception();
      }
    };
    changed_.notify_all();
    changed_.wait(lock, [&] { return !wanted_; });
    if (failure) std::rethrow_exception(failure);
  }

 private:
  void serve() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return static_cast<bool>(wanted_); });
      wanted_();
      wanted_ = nullptr;
      changed_.notify_all();
    }
  }

  pid_t owner_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> wanted_;
};

}  // namespace

void on_lasting_thread(const std::function<void()>& work) {
  // Neither ever goes: the thread waits for more until the process ends.
  static std::mutex& one_at_a_time = *new std::mutex;
  static LastingThread* thread = nullptr;
  const std::lock_guard lock(one_at_a_time);
  if (!thread || !thread->is_here()) thread = new LastingThread;
  thread->run(work);
}

}  // namespace attest
