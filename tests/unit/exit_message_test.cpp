// What a process says when it dies.
#include "harness/mpi/exit_message.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <string>

namespace attest {
namespace {

/// What comes to stderr of a process that does this, until it and whom it left behind have closed it.
std::string said_by(const std::function<void()>& act) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    setpgid(0, 0);
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    act();
    _exit(0);
  }
  close(ends[1]);
  std::string said;
  char byte = 0;
  while (read(ends[0], &byte, 1) == 1) said += byte;
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return said;
}

TEST(ExitMessage, IsSaidByWhoIsKilled) {
  EXPECT_EQ(said_by([] {
              const ExitMessage word("gone");
              raise(SIGKILL);
            }),
            "gone\n");
}

TEST(ExitMessage, IsSaidWhereTheWholeGroupIsKilled) {
  EXPECT_EQ(said_by([] {
              const ExitMessage word("all are gone");
              usleep(50000);  // until the child has left the group
              kill(0, SIGKILL);
            }),
            "all are gone\n");
}

TEST(ExitMessage, IsSaidByWhoLeavesAtOnce) {
  EXPECT_EQ(said_by([] {
              const ExitMessage word("left");
              _exit(9);
            }),
            "left\n");
}

TEST(ExitMessage, IsNotSaidAfterAnOrdinaryEnd) {
  EXPECT_EQ(said_by([] { const ExitMessage word("gone"); }), "");
  EXPECT_EQ(said_by([] {
              ExitMessage word("gone");
              word.withdraw();
              raise(SIGKILL);
            }),
            "");
}

TEST(ExitMessage, IsNotHeldBackByProcessesThatWereStarted) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(said_by([] {
              const ExitMessage word("gone");
              if (std::system("exec sleep 20 2>/dev/null >/dev/null &") != 0) _exit(1);
              raise(SIGKILL);
            }),
            "gone\n");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(15));
}

}  // namespace
}  // namespace attest
