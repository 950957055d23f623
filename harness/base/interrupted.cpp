#include "harness/base/interrupted.h"

#include <csignal>

namespace attest {

std::atomic<bool> interrupted{false};

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = [](int) { interrupted = true; };
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

}  // namespace attest
