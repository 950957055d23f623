#include "harness/backends/isolation/worker_words.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <future>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "harness/base/text.h"

namespace attest {
namespace {

constexpr std::size_t kMostOfStranger = 64 << 10;
/// How long what a worker said at its end is waited for. Something that it left behind may keep the pipe.
constexpr std::chrono::milliseconds kToEnd{200};

/// Out of the way of the descriptors that the worker will have, which are set before its standard error is.
int high(int descriptor) {
  if (descriptor < 0) return descriptor;
  const int moved = fcntl(descriptor, F_DUPFD_CLOEXEC, 10);
  close(descriptor);
  return moved;
}

/// A pipe or a terminal is opened anew for the worker: the flags of what is shared, such as O_NONBLOCK, would be this
/// process's, too. A file stays shared, as two who write at places of their own would overwrite each other.
int standard_error_opened_anew() {
  struct stat about {};
  if (fstat(STDERR_FILENO, &about) != 0 || !(S_ISFIFO(about.st_mode) || S_ISCHR(about.st_mode))) return -1;
  const int opened = open("/proc/self/fd/2", O_WRONLY | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
  if (opened >= 0) fcntl(opened, F_SETFL, 0);
  return opened;
}

void say(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

void pass_on(int from) {
  char bytes[4096];
  for (std::size_t left = kMostOfStranger;;) {
    const ssize_t got = read(from, bytes, sizeof bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return;
    if (left == 0) continue;  // read, so that nobody waits for it
    const std::size_t taken = std::min(left, static_cast<std::size_t>(got));
    left -= taken;
    say(printable(std::string(bytes, taken)));
    if (left == 0) say("\nattest: what else it says on standard error is left out\n");
  }
}

}  // namespace

WorkerWords::WorkerWords(bool of_stranger) {
  int ends[2];
  if (!of_stranger || pipe2(ends, O_CLOEXEC) != 0) {
    descriptor_ = high(of_stranger ? open("/dev/null", O_WRONLY | O_CLOEXEC) : standard_error_opened_anew());
    return;
  }
  descriptor_ = high(ends[1]);
  std::promise<void> all_said;
  all_said_ = all_said.get_future();
  std::thread([all_said = std::move(all_said), from = ends[0]]() mutable {
    pass_on(from);
    close(from);
    all_said.set_value();
  }).detach();
}

WorkerWords::~WorkerWords() {
  handed_over();
  if (all_said_.valid()) all_said_.wait_for(kToEnd);
}

void WorkerWords::handed_over() {
  if (descriptor_ >= 0) close(descriptor_);
  descriptor_ = -1;
}

}  // namespace attest
