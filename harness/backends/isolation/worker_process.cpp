#include "harness/backends/isolation/worker_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "harness/backends/isolation/lasting_thread.h"
#include "harness/backends/isolation/sandbox.h"
#include "harness/backends/isolation/scratch_space.h"
#include "harness/backends/isolation/worker.h"
#include "harness/base/backend_source.h"
#include "harness/base/launcher.h"
#include "harness/base/machine.h"
#include "harness/base/raw_clock.h"
#include "harness/base/restart.h"
#include "harness/base/resting_threads.h"

namespace attest {

namespace {

/// A process stops at once, unless somebody has it go on again and again.
constexpr std::chrono::seconds kMostToStop{5};
constexpr unsigned kLookAtRest = 2000;  ///< microseconds
constexpr double kAtRest = 0.1;         ///< of a processor, at most

/// 0 where it has ended.
std::size_t threads_of(pid_t process) {
  struct stat tasks {};  // a folder has a link for itself, and one in each of its folders
  return stat(fmt::format("/proc/{}/task", process).c_str(), &tasks) == 0 && tasks.st_nlink > 2 ? tasks.st_nlink - 2
                                                                                                : 0;
}

}  // namespace

WorkerProcess::WorkerProcess(const std::string& name, const Context& context, const IsolationOptions& options,
                             const std::string& plugin)
    : wanted_(options.sandbox),
      words_(/*of_stranger=*/wanted_.has_value()),
      inputs_(wanted_ || options.seals_inputs ? SharedFile::Writers::here : SharedFile::Writers::both) {
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) {
    throw BackendUnavailable("no socket for a worker process");
  }
  socket_ = sockets[0];
  // Out of the way of descriptors 3 to 5, which the worker will have.
  const int theirs = fcntl(sockets[1], F_DUPFD_CLOEXEC, 10), memory = fcntl(file_.descriptor(), F_DUPFD_CLOEXEC, 10),
            inputs = fcntl(inputs_.descriptor(), F_DUPFD_CLOEXEC, 10);
  close(sockets[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, theirs, kWorkerSocket);
  posix_spawn_file_actions_adddup2(&actions, memory, kWorkerFile);
  posix_spawn_file_actions_adddup2(&actions, inputs, kWorkerInputs);
  if (words_.descriptor() >= 0) posix_spawn_file_actions_adddup2(&actions, words_.descriptor(), STDERR_FILENO);
  posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);  // stdout is the report's
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addclosefrom_np(&actions, kWorkerInputs + 1);  // files of results among them
  const bool in_python = !python_object(plugin).empty() && restart_in_python();
  const Restart& how = in_python ? *restart_in_python() : restart();
  std::vector<std::string> words = how.words;
  if (words.empty()) words.push_back(program_path().string());
  words.insert(words.end(), {"worker", name, "--threads", std::to_string(context.threads)});
  if (!context.device.empty()) words.insert(words.end(), {"--device", context.device});
  if (!plugin.empty()) words.insert(words.end(), {"--plugin", seen_from_anywhere(plugin)});
  if (wanted_) {
    hide_memory();
    words.insert(words.end(), {"--sandbox", layers_text(wanted_->layers), "--scratch", scratch_.emplace().path()});
  }
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  // Several workers take turns: threads of one that wait in a loop would keep the cores from the next.
  have_waiting_threads_rest();
  // A worker of a rank is none itself, whatever its backend does with MPI. Until it becomes another program it shares
  // the rank's memory, with the pages that a network card may hold: unlike a fork it copies none.
  std::vector<std::string> variables = environment_without_launcher();
  if (wanted_) variables = environment_of_stranger(variables, scratch_->path());
  std::vector<char*> environment;
  for (std::string& variable : variables) environment.push_back(variable.data());
  environment.push_back(nullptr);
  int error = 0;
  on_lasting_thread([&] {
    error = posix_spawn(&process_, how.file.c_str(), &actions, nullptr, arguments.data(), environment.data());
  });
  posix_spawn_file_actions_destroy(&actions);
  close(theirs);
  close(memory);
  close(inputs);
  words_.handed_over();
  if (error != 0) {
    close(socket_);
    throw BackendUnavailable(std::string("no worker process: ") + std::strerror(error));
  }
  memory_.emplace(process_, options.memory_gib);
}

WorkerProcess::~WorkerProcess() {
  close(socket_);
  for (int tries = 0; !stopped_ && tries < 50; ++tries) {
    if (has_ended()) return;
    usleep(2000);
  }
  end();
}

Received WorkerProcess::greeting(Json& hello, std::chrono::milliseconds limit) {
  if (wanted_) {
    if (const Received received = receive(hello, limit); received != Received::message) return received;
    std::vector<SandboxLayerState> layers;
    for (const Json& one : hello.at("sandbox")) {
      layers.push_back({one.at("layer").get<SandboxLayer>(), one.at("missing").get<std::string>()});
    }
    if (const std::string missing = vital_layer_missing(layers, *wanted_); !missing.empty())
      throw BackendUnavailable(missing);
    sandbox_ = sandbox_text(layers);
    watches_scratch_ = std::any_of(layers.begin(), layers.end(), [](const SandboxLayerState& one) {
      return one.layer == SandboxLayer::scratch && !one.missing.empty();
    });
  }
  return receive(hello, limit);
}

void WorkerProcess::greeted() {
  look_at_memory(/*only_if_due=*/false);
  memory_->begin();
}

bool WorkerProcess::send(const Json& request, std::chrono::milliseconds limit) {
  go_on();
  file_at_request_ = shared_memory();
  asked_ = now();
  return send_message(socket_, request, limit);
}

Received WorkerProcess::receive(Json& message, std::chrono::milliseconds limit) {
  const Received received = receive_message(socket_, message, limit, [&] {
    look_at_memory(/*only_if_due=*/false);
    return !has_ended();
  });
  answered_ = now();
  if (received != Received::message) return received;
  look_at_memory(/*only_if_due=*/true);
  // Whoever has taken too much by this very answer is told so here, and not at the next question.
  return memory_->excess().empty() ? received : Received::closed;
}

WorkerProcess::Moment WorkerProcess::now() const {
  return {steady_seconds(), process_ > 0 ? seconds_of_clock(process_clock(process_)) : 0};
}

void WorkerProcess::stop() {
  if (stopped_ || process_ <= 0 || kill(process_, SIGSTOP) != 0) return;
  const auto until = std::chrono::steady_clock::now() + kMostToStop;
  int status = 0;
  pid_t changed = 0;
  while ((changed = waitpid(process_, &status, WUNTRACED | WNOHANG)) == 0 || (changed < 0 && errno == EINTR)) {
    if (std::chrono::steady_clock::now() > until) {
      end();
      return;
    }
    usleep(20);
  }
  stopped_ = changed == process_ && WIFSTOPPED(status);
  if (stopped_) return;
  status_ = status;
  process_ = -1;
}

void WorkerProcess::go_on() {
  if (stopped_ && process_ > 0) kill(process_, SIGCONT);
  stopped_ = false;
}

void WorkerProcess::await_rest(std::chrono::milliseconds limit) {
  go_on();
  const auto until = std::chrono::steady_clock::now() + limit;
  while (std::chrono::steady_clock::now() < until) {
    const Moment before = now();
    usleep(kLookAtRest);
    const Moment after = now();
    if (after.cpu - before.cpu < kAtRest * (after.clock - before.clock)) break;
  }
  stop();
}

void WorkerProcess::look_at_memory(bool only_if_due) {
  if (process_ <= 0) return;
  if (only_if_due && !memory_->due()) return;
  const double files = shared_memory();
  const double mapped = static_cast<double>(file_.mapped()) + static_cast<double>(inputs_.mapped());
  memory_->look(files, std::max(files - file_at_request_, files - mapped));
  look_at_limits();
}

void WorkerProcess::look_at_limits() {
  if (!wanted_ || !excess_.empty()) return;
  if (threads_of(process_) > kMostThreads)
    excess_ = fmt::format("more than {} threads", kMostThreads);
  else if (watches_scratch_ && has_scratch_excess(scratch_->path(), process_))
    excess_ = scratch_excess_text();
  if (!excess_.empty()) kill(process_, SIGKILL);
}

bool WorkerProcess::has_ended() {
  if (process_ <= 0) return true;
  int status = 0;
  const pid_t ended = waitpid(process_, &status, WNOHANG);
  if (ended == 0) return false;
  if (ended == process_) status_ = status;
  process_ = -1;
  return true;
}

int WorkerProcess::end() {
  if (!has_ended()) {
    had_to_be_ended_ = true;
    kill(process_, SIGKILL);
    int status = 0;
    while (waitpid(process_, &status, 0) < 0 && errno == EINTR) {
    }
    status_ = status;
    process_ = -1;
  }
  return status_;
}

int WorkerProcess::await() {
  for (int tries = 0; tries < 500; ++tries) {
    if (has_ended()) return status_;
    usleep(2000);
  }
  return end();
}

std::string WorkerProcess::text_of_end() const {
  if (!excess_.empty()) return "killed for " + excess_;
  if (had_to_be_ended_) return "gave up its connection to attest";
  return text_of_status(status_);
}

std::string WorkerProcess::memory_excess() const {
  if (!WIFSIGNALED(status_) || WTERMSIG(status_) != SIGKILL || !memory_) return "";
  if (std::string excess = memory_->excess(); !excess.empty()) return excess;
  if (!had_to_be_ended_ && memory_->system_ended_one()) return "the system had no more for it";
  return "";
}

std::string text_of_status(int status) {
  if (WIFSIGNALED(status)) return std::string("ended by ") + strsignal(WTERMSIG(status));
  return "its process ended with exit code " + std::to_string(WEXITSTATUS(status));
}

}  // namespace attest
