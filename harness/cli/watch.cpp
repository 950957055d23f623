#include "harness/cli/watch.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <optional>
#include <string>
#include <thread>

#include "harness/base/interrupted.h"
#include "harness/base/text.h"
#include "harness/base/user_error.h"
#include "harness/cli/command.h"

extern char** environ;

namespace attest {
namespace {

constexpr auto kBetweenLooks = std::chrono::milliseconds(200);

/// What a file looks like from outside; empty where it isn't there.
struct Look {
  std::filesystem::file_time_type written{};
  std::uintmax_t size = 0;
  bool operator==(const Look&) const = default;
};

std::optional<Look> look_at(const std::filesystem::path& file) {
  std::error_code no_time, no_size;
  const Look look{std::filesystem::last_write_time(file, no_time), std::filesystem::file_size(file, no_size)};
  return no_time || no_size ? std::nullopt : std::optional(look);
}

std::vector<std::optional<Look>> looks_of(const std::vector<std::filesystem::path>& files) {
  std::vector<std::optional<Look>> looks;
  for (const std::filesystem::path& file : files) looks.push_back(look_at(file));
  return looks;
}

/// The first that changed; empty when the user interrupts. A file is complete when it looks the same twice.
std::filesystem::path next_change(const std::vector<std::filesystem::path>& files,
                                  const std::vector<std::optional<Look>>& before) {
  std::vector<std::optional<Look>> last = before;
  while (!interrupted) {
    std::this_thread::sleep_for(kBetweenLooks);
    const std::vector<std::optional<Look>> now = looks_of(files);
    for (std::size_t n = 0; n < files.size(); ++n) {
      if (now[n] && now[n] != before[n] && now[n] == last[n]) return files[n];
    }
    last = now;
  }
  return {};
}

std::vector<std::string> own_command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) {
    if (word != "--watch") words.push_back(word);
  }
  if (words.empty()) throw UserError("--watch: /proc is not there, which has the command line to run again");
  return words;
}

/// Its exit code, or 128 and the number of the signal that ended it.
int run_once(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t process = 0;
  const int failed = posix_spawnp(&process, arguments.front(), nullptr, nullptr, arguments.data(), environ);
  if (failed != 0) throw UserError(std::string("--watch: attest can't be started again: ") + std::strerror(failed));
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) continue;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

int run_at_each_change(const std::vector<std::filesystem::path>& files, const std::vector<std::string>& more) {
  std::vector<std::string> words = own_command_line();
  words.insert(words.end(), more.begin(), more.end());
  for (;;) {
    const std::vector<std::optional<Look>> before = looks_of(files);
    const int exit_code = run_once(words);
    if (interrupted) return exit_code;
    fmt::print("\nwaiting for a change of {} file{}; Ctrl-C ends\n", files.size(), files.size() == 1 ? "" : "s");
    std::fflush(stdout);
    const std::filesystem::path changed = next_change(files, before);
    if (changed.empty()) {
      interrupted = false;  // no results are missing
      return exit_code;
    }
    fmt::print("\n{:%H:%M:%S}: {} changed\n\n", fmt::localtime(std::time(nullptr)), printable_line(changed.string()));
    std::fflush(stdout);
  }
}

}  // namespace attest
