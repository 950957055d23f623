// A worker process as the harness holds it: the process, its socket and the memory shared with it.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "backends/backend.h"
#include "harness/backends/isolation/isolation_options.h"
#include "harness/backends/isolation/memory_watch.h"
#include "harness/backends/isolation/messages.h"
#include "harness/backends/isolation/shared_memory.h"
#include "harness/backends/isolation/stranger.h"
#include "harness/backends/isolation/worker_words.h"

namespace attest {

class WorkerProcess {
 public:
  /// Starts this program as a worker for the backend `name`, of a plug-in where `plugin` is the path of one; with
  /// an empty name it only says which the plug-in has. Throws BackendUnavailable when there can be no process.
  /// Of its other descriptors the worker has none of this process's but standard error, and in a sandbox not that.
  WorkerProcess(const std::string& name, const Context& context, const IsolationOptions& options,
                const std::string& plugin = "");
  /// Closes the socket, on which the worker ends, and ends a worker that doesn't notice. With this process it ends in
  /// any case, whatever ends that and whichever thread had started it.
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  SharedFile& file() { return file_; }
  /// Of inputs, which in a sandbox the worker can't write to.
  SharedFile& inputs() { return inputs_; }

  /// Its first message, which says whether it is ready; of a worker in a sandbox the second. Throws BackendUnavailable
  /// where a layer is missing without which strangers aren't run.
  Received greeting(Json& hello, std::chrono::milliseconds limit);
  /// Which layers are in force, by its own account from before it loaded anything; "" without a sandbox.
  const std::string& sandbox() const { return sandbox_; }
  /// It has said that it is ready.
  void greeted();
  /// False when the worker is gone, or took nothing for so long.
  bool send(const Json& request, std::chrono::milliseconds limit);
  /// The next message. Meanwhile the worker's memory is watched.
  Received receive(Json& message, std::chrono::milliseconds limit);

  /// A moment by the clock, and by the processor time of all the worker's threads.
  struct Moment {
    double clock = 0, cpu = 0;
  };
  Moment now() const;
  /// When the last request was sent, and when its answer was here.
  const Moment& asked() const { return asked_; }
  const Moment& answered() const { return answered_; }
  /// Stops all its threads until send() has the next request for it. One that has ended stays ended; one that is still
  /// stopped when this goes is ended, and one that can't be stopped is so at once.
  void stop();
  /// Has it go on without a request until its threads take no processor time, for `limit` at most.
  void await_rest(std::chrono::milliseconds limit);

  /// Ends the process. Returns its status, as of waitpid: how it had ended, if it already had.
  int end();
  /// Waits for a process that closed its socket, and ends it after a second. Returns its status.
  int await();
  /// How it came to its end, in words; after end() or await().
  std::string text_of_end() const;
  /// Why it was ended for the memory that it took, by this program or by the system; empty otherwise. After the same.
  std::string memory_excess() const;

 private:
  /// Whether it has ended; then its status is kept.
  bool has_ended();
  void go_on();
  void look_at_memory(bool only_if_due);
  void look_at_limits();
  /// Bytes of both files.
  double shared_memory() const { return file_.memory() + inputs_.memory(); }

  std::optional<SandboxOptions> wanted_;
  std::optional<ScratchFolder> scratch_;  ///< goes when the process has ended
  WorkerWords words_;
  std::string sandbox_;
  SharedFile file_, inputs_;
  int socket_ = -1;
  pid_t process_ = -1;  ///< -1 once its end is known
  int status_ = 0;
  bool stopped_ = false;
  bool had_to_be_ended_ = false;  ///< though it had closed its socket
  bool watches_scratch_ = false;  ///< where its system sets no limit
  std::string excess_;            ///< why it was ended, besides memory
  Moment asked_, answered_;
  double file_at_request_ = 0;  ///< bytes of the file's memory then: what is added is the worker's doing
  std::optional<MemoryWatch> memory_;
};

/// "ended by Segmentation fault", or with which exit code; `status` as of waitpid.
std::string text_of_status(int status);

}  // namespace attest
