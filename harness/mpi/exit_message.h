// A line that is said when this process dies without a chance to say it: killed, or ended by a library.
#pragma once

#include <sys/types.h>

#include <string>

namespace attest {

/// A child process waits for the end of this one and then writes the line to stderr. It leaves this process's group, so
/// that what kills the group leaves it its moment, and holds no other descriptor of this process.
class ExitMessage {
 public:
  /// `line` without its end. Where no process can be had, it will not be said.
  explicit ExitMessage(const std::string& line);
  /// As withdraw().
  ~ExitMessage();
  ExitMessage(const ExitMessage&) = delete;
  ExitMessage& operator=(const ExitMessage&) = delete;

  /// From now on nothing is said.
  void withdraw();

 private:
  pid_t child_ = -1;
  int pipe_ = -1;  ///< closed without a byte by a death, with one by withdraw()
};

}  // namespace attest
