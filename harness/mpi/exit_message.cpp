#include "harness/mpi/exit_message.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace attest {
namespace {

/// The child: calls alone that are safe after a fork among threads.
[[noreturn]] void wait_and_say(int from, const char* line, std::size_t length) {
  for (int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) std::signal(number, SIG_IGN);
  setsid();
  dup2(from, STDIN_FILENO);
  close(STDOUT_FILENO);
  close_range(STDERR_FILENO + 1, ~0U, 0);
  char byte = 0;
  ssize_t got = 0;
  do {
    got = read(STDIN_FILENO, &byte, 1);
  } while (got < 0 && errno == EINTR);
  if (got == 0 && write(STDERR_FILENO, line, length) < 0) _exit(1);
  _exit(0);
}

}  // namespace

ExitMessage::ExitMessage(const std::string& line) {
  const std::string whole = line + "\n";
  int ends[2];
  // Workers must not keep the pipe open.
  if (pipe2(ends, O_CLOEXEC) != 0) return;
  child_ = fork();
  if (child_ == 0) wait_and_say(ends[0], whole.data(), whole.size());
  close(ends[0]);
  if (child_ < 0)
    close(ends[1]);
  else
    pipe_ = ends[1];
}

ExitMessage::~ExitMessage() { withdraw(); }

void ExitMessage::withdraw() {
  if (pipe_ < 0) return;
  const char byte = 1;
  while (write(pipe_, &byte, 1) < 0 && errno == EINTR) continue;
  close(pipe_);
  pipe_ = -1;
  while (waitpid(child_, nullptr, 0) < 0 && errno == EINTR) continue;
}

}  // namespace attest
