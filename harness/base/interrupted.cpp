#include "harness/base/interrupted.h"

#include <unistd.h>

#include <csignal>

namespace attest {

std::atomic<bool> interrupted{false};

namespace {

void on_interrupt(int number) {
  if (!interrupted.exchange(true)) return;
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
}

}  // namespace attest
