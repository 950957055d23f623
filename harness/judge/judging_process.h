// One submission judged by this program once more, in a process of its own: whatever becomes of that, the next
// submission is judged.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace attest {

struct JudgingProcess {
  std::vector<std::string> words;  ///< behind `judge`
  std::string input;               ///< what it reads from standard input: the secret stands on no command line
  std::chrono::milliseconds limit{};
};

struct JudgingEnd {
  int status = 0;  ///< as of waitpid
  bool timed_out = false;
  std::string output;  ///< of standard output
  std::string words;   ///< the last line of standard error
};

/// Runs it to its end, with all that it has started. Ended early when `interrupted`. The process stays on the
/// processors of the calling thread. Throws UserError where no process can be started.
JudgingEnd run_judging(const JudgingProcess& process);

}  // namespace attest
