// A worker process as the harness holds it: the process, its socket and the memory shared with it.
#pragma once

#include <sys/types.h>

#include <string>

#include "backends/backend.h"
#include "harness/isolation/shared_memory.h"

namespace attest {

class WorkerProcess {
 public:
  /// Starts this program as a worker for the backend `name`, of a plug-in where `plugin` is the path of one; with
  /// an empty name it only says which the plug-in has. Throws BackendUnavailable when there can be no process.
  WorkerProcess(const std::string& name, const Context& context, double memory_gib, const std::string& plugin = "");
  /// Closes the socket, on which the worker ends, and ends a worker that doesn't notice.
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  int socket() const { return socket_; }
  SharedFile& file() { return file_; }

  /// Ends the process. Returns its status, as of waitpid: how it had ended, if it already had.
  int end();
  /// Waits for a process that closed its socket, and ends it after a second. Returns its status.
  int await();

 private:
  SharedFile file_;
  int socket_ = -1;
  pid_t process_ = -1;
};

/// "ended by Segmentation fault", or with which exit code.
std::string text_of_end(int status);

}  // namespace attest
