// The threads of a backend on the host: tasks are handed out one by one, in their order, to as many workers as there
// are threads.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>
#include <exception>

namespace attest::support {

class HostThreads {
 public:
  /// No more workers than tasks, and one at least. `multiply_adds` of all tasks together decide whether threads pay.
  HostThreads(int threads, std::int64_t tasks, double multiply_adds)
      // Waking the team costs some microseconds, and its idle members spin.
      : workers_(std::clamp<std::int64_t>(tasks, 1, std::max(threads, 1))), worth_(tasks > 1 && multiply_adds > 2e5) {}

  std::int64_t workers() const { return workers_; }

  /// step(task, worker) for each task from 0 on; a worker has one task at a time. What a step throws is thrown when all
  /// have ended.
  template <class Step>
  void each(std::int64_t tasks, const Step& step) const {
    std::exception_ptr failure;
#pragma omp parallel for schedule(dynamic, 1) num_threads(static_cast <int>(workers_)) if (worth_)
    for (std::int64_t task = 0; task < tasks; ++task) {
      try {
        step(task, static_cast<std::size_t>(omp_get_thread_num()));
      } catch (...) {
#pragma omp critical
        failure = std::current_exception();
      }
    }
    if (failure) std::rethrow_exception(failure);
  }

 private:
  std::int64_t workers_;
  bool worth_;
};

}  // namespace attest::support
