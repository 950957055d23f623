// Where the words of a worker go, which are its standard error.
#pragma once

#include <future>

namespace attest {

class WorkerWords {
 public:
  /// Of a stranger's worker nothing but words gets here: they come through a pipe, go on to this process's standard
  /// error with control characters made visible, and end after 64 KiB. Others write to what this process has.
  explicit WorkerWords(bool of_stranger);
  /// What a worker that has ended said is out then.
  ~WorkerWords();
  WorkerWords(const WorkerWords&) = delete;
  WorkerWords& operator=(const WorkerWords&) = delete;

  /// What the worker is to have as its standard error; -1: what this process has.
  int descriptor() const { return descriptor_; }
  /// The worker has it.
  void handed_over();

 private:
  int descriptor_ = -1;
  std::future<void> all_said_;  ///< of a stranger
};

}  // namespace attest
