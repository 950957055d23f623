#include "harness/isolation/worker_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <vector>

#include "harness/base/backend_source.h"
#include "harness/base/launcher.h"
#include "harness/base/machine.h"
#include "harness/base/restart.h"
#include "harness/isolation/worker.h"

namespace attest {

WorkerProcess::WorkerProcess(const std::string& name, const Context& context, double memory_gib,
                             const std::string& plugin) {
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) {
    throw BackendUnavailable("no socket for a worker process");
  }
  socket_ = sockets[0];
  // Out of the way of descriptors 3 and 4, which the worker will have.
  const int theirs = fcntl(sockets[1], F_DUPFD_CLOEXEC, 10), memory = fcntl(file_.descriptor(), F_DUPFD_CLOEXEC, 10);
  close(sockets[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, theirs, kWorkerSocket);
  posix_spawn_file_actions_adddup2(&actions, memory, kWorkerFile);
  posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);  // stdout is the report's
  std::vector<std::string> words = restart().words;
  if (words.empty()) words.push_back(program_path().string());
  words.insert(words.end(),
               {"worker", name, "--threads", std::to_string(context.threads), "--memory", std::to_string(memory_gib)});
  if (!context.device.empty()) words.insert(words.end(), {"--device", context.device});
  if (!plugin.empty()) words.insert(words.end(), {"--plugin", seen_from_anywhere(plugin)});
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  // Several workers take turns: threads of one that wait in a loop would keep the cores from the next.
  setenv("OMP_WAIT_POLICY", "passive", 0);
  // A worker of a rank is none itself, whatever its backend does with MPI. Until it becomes another program it shares
  // the rank's memory, with the pages that a network card may hold: unlike a fork it copies none.
  std::vector<std::string> variables = environment_without_launcher();
  std::vector<char*> environment;
  for (std::string& variable : variables) environment.push_back(variable.data());
  environment.push_back(nullptr);
  const int error =
      posix_spawn(&process_, restart().file.c_str(), &actions, nullptr, arguments.data(), environment.data());
  posix_spawn_file_actions_destroy(&actions);
  close(theirs);
  close(memory);
  if (error != 0) {
    close(socket_);
    throw BackendUnavailable(std::string("no worker process: ") + std::strerror(error));
  }
}

WorkerProcess::~WorkerProcess() {
  close(socket_);
  if (process_ <= 0) return;
  for (int tries = 0; tries < 50; ++tries) {
    if (waitpid(process_, nullptr, WNOHANG) != 0) return;
    usleep(2000);
  }
  end();
}

int WorkerProcess::end() {
  int status = 0;
  kill(process_, SIGKILL);
  waitpid(process_, &status, 0);
  process_ = -1;
  return status;
}

int WorkerProcess::await() {
  int status = 0;
  for (int tries = 0; tries < 500; ++tries) {
    if (waitpid(process_, &status, WNOHANG) != 0) {
      process_ = -1;
      return status;
    }
    usleep(2000);
  }
  return end();
}

std::string text_of_end(int status) {
  if (WIFSIGNALED(status)) return std::string("ended by ") + strsignal(WTERMSIG(status));
  return "its process ended with exit code " + std::to_string(WEXITSTATUS(status));
}

}  // namespace attest
