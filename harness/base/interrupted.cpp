#include "harness/base/interrupted.h"

#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <ctime>

namespace attest {

std::atomic<bool> interrupted{false};

namespace {

/// One request may come twice: `timeout` signals the process, then its group.
constexpr std::int64_t kOneRequest = 100'000'000;  // nanoseconds

std::atomic<std::int64_t> first_at{0};

std::int64_t now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

void on_interrupt(int number) {
  if (!interrupted.exchange(true)) {
    first_at = now();
    return;
  }
  if (now() - first_at < kOneRequest) return;
  constexpr char kWords[] = "\nattest: stopped at once\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kWords, sizeof kWords - 1);
  std::signal(number, SIG_DFL);
  std::raise(number);  // arrives when this handler returns
}

}  // namespace

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);
}

}  // namespace attest
