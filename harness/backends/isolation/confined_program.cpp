#include "harness/backends/isolation/confined_program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>

#include "backends/backend.h"
#include "harness/backends/isolation/sandbox.h"
#include "harness/backends/isolation/scratch_space.h"
#include "harness/backends/isolation/stranger.h"
#include "harness/base/launcher.h"
#include "harness/base/machine.h"
#include "harness/base/restart.h"

namespace attest {
namespace {

constexpr std::size_t kMostOutput = 64 << 10;
constexpr std::int64_t kBetweenSizes = 20;            ///< milliseconds, at what it has written
constexpr int kNotConfined = 126, kNotStarted = 127;  // as of a shell

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// Reads until the other side is closed, or until the time is over or `goes_on` says no: false then.
bool read_all(int pipe, std::string& text, std::chrono::steady_clock::time_point end,
              const std::function<bool()>& goes_on) {
  for (char buffer[4096];;) {
    if (!goes_on()) return false;
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
    if (left <= 0) return false;
    pollfd ready{pipe, POLLIN, 0};
    const int count = poll(&ready, 1, static_cast<int>(std::min<std::int64_t>(left, kBetweenSizes)));
    if (count < 0 && errno == EINTR) continue;
    if (count == 0) continue;
    const ssize_t got = read(pipe, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return true;
    text.append(buffer, std::min(static_cast<std::size_t>(got), kMostOutput - std::min(kMostOutput, text.size())));
  }
}

}  // namespace

ProgramEnd run_confined(const ConfinedProgram& program, std::chrono::milliseconds limit) {
  std::vector<std::string> words = restart().words;
  if (words.empty()) words.push_back(program_path().string());
  words.insert(words.end(),
               {"confined", "--sandbox", layers_text(program.sandbox.layers), "--scratch", program.scratch});
  if (program.sandbox.trust) words.emplace_back("--trust");
  for (const std::filesystem::path& path : program.readable) words.insert(words.end(), {"--readable", path});
  words.emplace_back("--");
  words.insert(words.end(), program.words.begin(), program.words.end());
  std::vector<std::string> variables = environment_of_stranger(environment_without_launcher(), program.scratch);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw BackendUnavailable("no pipe for a program");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  posix_spawn_file_actions_addclosefrom_np(&actions, 3);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);  // all of it can be ended at once
  posix_spawnattr_setpgroup(&attributes, 0);
  pid_t process = -1;
  hide_memory();
  const int error = posix_spawn(&process, restart().file.c_str(), &actions, &attributes, pointers_to(words).data(),
                                pointers_to(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  close(ends[1]);
  if (error != 0) {
    close(ends[0]);
    throw BackendUnavailable(std::string("no process for a program: ") + std::strerror(error));
  }
  ProgramEnd end;
  const auto goes_on = [&] { return !(end.wrote_too_much = has_scratch_excess(program.scratch)); };
  end.timed_out = !read_all(ends[0], end.output, std::chrono::steady_clock::now() + limit, goes_on);
  close(ends[0]);
  // It may have closed its output and go on: nothing of it is left behind.
  for (int tries = 0; tries < 500 && !end.timed_out; ++tries) {
    if (waitpid(process, &end.status, WNOHANG) == process) {
      kill(-process, SIGKILL);
      return end;
    }
    usleep(2000);
  }
  end.timed_out = true;
  kill(-process, SIGKILL);
  while (waitpid(process, &end.status, 0) < 0 && errno == EINTR) {
  }
  return end;
}

int become_confined(const ConfinedProgram& program) {
  SandboxRequest request{program.sandbox.layers, program.scratch,  program.readable, /*keeps_scratch=*/true,
                         /*processes=*/true,     /*executes=*/true};
  const std::string missing = vital_layer_missing(enter_sandbox(request), program.sandbox);
  if (!missing.empty()) {
    std::fprintf(stderr, "error: %s\n", missing.c_str());
    return kNotConfined;
  }
  std::vector<std::string> words = program.words;
  execvp(words.front().c_str(), pointers_to(words).data());
  std::fprintf(stderr, "error: %s can't be started: %s\n", words.front().c_str(), std::strerror(errno));
  return kNotStarted;
}

}  // namespace attest
