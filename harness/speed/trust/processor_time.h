// What a backend takes of the processors while it is timed: its threads, those that have ended, and every process that
// it started, however far down.
//
// A child that a plan waits for counts when it has ended; one that it doesn't wait for counts while it lives. Whoever
// starts a process and ends leaves it to this one (adopt_orphans()), so that it stays in sight.
#pragma once

#include <map>
#include <vector>

namespace attest {

/// From now on processes whose parent has ended become children of this one, if they descend from it.
void adopt_orphans();

class ProcessorTime {
 public:
  /// Begins to count.
  ProcessorTime();

  /// Around each run: what is computed in between counts.
  void begin_run();
  void end_run();

  /// Processor seconds of this process in the runs so far.
  double own() const { return own_; }
  /// Of its descendants: those that lived from the beginning to now in the runs, and all of those that began or ended
  /// in between.
  double descendants() const;

 private:
  struct Process {
    double own = 0;    ///< seconds of its threads
    double ended = 0;  ///< of its children that have ended
  };
  struct Descendant {
    Process before;
    double at_begin = 0, in_runs = 0;
  };

  static std::map<int, Process> living();
  double process_seconds() const;

  std::vector<int> threads_;  ///< of this process, but for the calling one
  std::map<int, Descendant> known_;
  double waited_for_ = 0, own_ = 0, at_begin_ = 0;
};

}  // namespace attest
