#include "harness/base/interrupted.h"

#include <gtest/gtest.h>

#include <csignal>

namespace attest {
namespace {

TEST(Interrupted, IsSetBySignalsThatWouldEndTheProgram) {
  struct sigaction before_int {
  }, before_term{};
  sigaction(SIGINT, nullptr, &before_int);
  sigaction(SIGTERM, nullptr, &before_term);
  catch_interrupts();
  EXPECT_FALSE(interrupted);
  for (const int signal : {SIGINT, SIGTERM}) {
    std::raise(signal);
    std::raise(signal);  // at once: the same request, as `timeout` sends it
    EXPECT_TRUE(interrupted.exchange(false)) << signal;
  }
  sigaction(SIGINT, &before_int, nullptr);
  sigaction(SIGTERM, &before_term, nullptr);
}

}  // namespace
}  // namespace attest
