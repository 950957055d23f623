// How much memory worker processes take, and which has taken too much.
//
// What counts is resident memory of a worker's own. A limit of addresses would accuse drivers of OpenCL and
// interpreters of Python, which reserve far more than they touch.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace attest {

/// Bytes that workers may take, all together, where the user names no number: most of what was free when it was first
/// asked for.
double default_worker_memory();

/// "15.2 GiB".
std::string gib_text(double bytes);

/// Resident bytes of a process, without the code that it shares and without `shared_file` bytes of what it shares; 0
/// where it has ended.
double own_memory(pid_t process, double shared_file);

/// How many processes the system has ended for want of memory, on the machine or in any group of processes; 0 where it
/// doesn't tell.
std::int64_t processes_ended_for_memory();

/// Of one worker.
class MemoryWatch {
 public:
  /// `gib`: what it may take beyond what it starts with; 0: all workers together default_worker_memory().
  MemoryWatch(pid_t process, double gib);
  ~MemoryWatch();
  MemoryWatch(const MemoryWatch&) = delete;
  MemoryWatch& operator=(const MemoryWatch&) = delete;

  /// It has started: what it takes from here on counts against its own limit. What a start takes is held against
  /// default_worker_memory() alone.
  void begin();
  /// Looks. Where workers have taken too much, the one that took most is
  /// ended, whether that is this one or another. `shared_file` is not of its making, but for `own_in_file` bytes.
  void look(double shared_file, double own_in_file);
  /// Whether the last look is so long ago that much may have been taken since.
  bool due() const;
  /// What it took and what it might, where it was ended for that; empty otherwise.
  std::string excess() const;
  /// Whether the system has ended a process for want of memory since this began.
  bool system_ended_one() const { return processes_ended_for_memory() > ended_before_; }

 private:
  bool has_own_limit() const { return begun_ && limit_ > 0; }
  double taken() const { return now_ - start_; }
  void end_it(double limit);

  pid_t process_;
  double limit_ = 0, start_ = 0, now_ = 0;
  bool begun_ = false;
  std::int64_t ended_before_, looked_ns_ = 0;
  std::string excess_;
};

}  // namespace attest
