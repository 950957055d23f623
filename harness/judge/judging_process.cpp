#include "harness/judge/judging_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "harness/backends/isolation/stranger.h"
#include "harness/base/interrupted.h"
#include "harness/base/launcher.h"
#include "harness/base/machine.h"
#include "harness/base/restart.h"
#include "harness/base/user_error.h"

namespace attest {
namespace {

constexpr std::size_t kMostOfJudgement = 4 << 20, kMostOfWords = 64 << 10;
constexpr int kGlance = 100;  ///< ms

struct Pipe {
  int read = -1, write = -1;
  Pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
      throw UserError(std::string("no pipe for a judging process: ") + std::strerror(errno));
    read = ends[0];
    write = ends[1];
  }
  ~Pipe() {
    close_read();
    close_write();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void close_read() {
    if (read >= 0) close(read);
    read = -1;
  }
  void close_write() {
    if (write >= 0) close(write);
    write = -1;
  }
};

/// Of text that strangers may have written without end the last part is kept, of a judgement the first.
void keep_end(std::string& text) {
  if (text.size() > 2 * kMostOfWords) text.erase(0, text.size() - kMostOfWords);
}

/// False at the end of the stream.
bool read_some(int from, std::string& text) {
  char buffer[4096];
  const ssize_t got = ::read(from, buffer, sizeof buffer);
  if (got > 0) text.append(buffer, static_cast<std::size_t>(got));
  return got > 0 || (got < 0 && errno == EINTR);
}

std::string last_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

/// `temporary`: where it has its files, so that none is left when it has to be ended.
pid_t start(const JudgingProcess& process, const Pipe& input, const Pipe& output, const Pipe& errors,
            const ScratchFolder& temporary) {
  std::vector<std::string> words = restart().words;
  if (words.empty()) words.push_back(program_path().string());
  words.emplace_back("judge");
  words.insert(words.end(), process.words.begin(), process.words.end());
  std::vector<char*> arguments, environment;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::vector<std::string> variables = environment_without_launcher();
  std::erase_if(variables, [](const std::string& variable) { return variable.starts_with("TMPDIR="); });
  variables.push_back("TMPDIR=" + temporary.path().string());
  for (std::string& variable : variables) environment.push_back(variable.data());
  environment.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input.read, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output.write, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, errors.write, STDERR_FILENO);
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
  pid_t child = -1;
  const int error =
      posix_spawn(&child, restart().file.c_str(), &actions, &attributes, arguments.data(), environment.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) throw UserError(std::string("no process to judge in: ") + std::strerror(error));
  return child;
}

}  // namespace

JudgingEnd run_judging(const JudgingProcess& process) {
  const ScratchFolder temporary;
  Pipe input, output, errors;
  const pid_t child = start(process, input, output, errors, temporary);
  input.close_read();
  output.close_write();
  errors.close_write();
  // A few bytes, which a pipe takes at once.
  if (write(input.write, process.input.data(), process.input.size()) < 0) errno = 0;
  input.close_write();
  const auto end = std::chrono::steady_clock::now() + process.limit;
  JudgingEnd result;
  while (output.read >= 0) {
    if (std::chrono::steady_clock::now() >= end || interrupted) {
      result.timed_out = !interrupted;
      break;
    }
    pollfd ready[] = {{output.read, POLLIN, 0}, {errors.read, POLLIN, 0}};
    if (poll(ready, 2, kGlance) < 0 && errno != EINTR) break;
    if (ready[0].revents != 0 && !read_some(output.read, result.output)) output.close_read();
    if (ready[1].revents != 0 && !read_some(errors.read, result.words)) errors.close_read();
    keep_end(result.words);
    if (result.output.size() > kMostOfJudgement) break;
  }
  if (output.read >= 0) kill(-child, SIGKILL);  // it didn't come to its end
  while (waitpid(child, &result.status, 0) < 0 && errno == EINTR) {
  }
  kill(-child, SIGKILL);  // nothing that it started goes on
  result.words = last_line(result.words);
  return result;
}

}  // namespace attest
