// How much memory a worker takes, and who is ended for it.
#include "harness/backends/isolation/memory_watch.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "harness/base/machine.h"

namespace attest {
namespace {

/// A process that takes memory when it is told to, and says when it has.
class Eater {
 public:
  Eater(std::size_t bytes, int sharing) {
    EXPECT_EQ(pipe(orders_), 0);
    EXPECT_EQ(pipe(answers_), 0);
    process_ = fork();
    if (process_ != 0) return;
    char letter = 0;
    while (read(orders_[0], &letter, 1) == 1) {
      void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | sharing, -1, 0);
      if (memory == MAP_FAILED) _exit(1);
      std::memset(memory, 1, bytes);
      if (write(answers_[1], &letter, 1) != 1) _exit(2);
    }
    _exit(0);
  }
  ~Eater() {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
    for (const int end : {orders_[0], orders_[1], answers_[0], answers_[1]}) close(end);
  }
  Eater(const Eater&) = delete;
  Eater& operator=(const Eater&) = delete;

  pid_t process() const { return process_; }
  void eat() {
    char letter = 'x';
    ASSERT_EQ(write(orders_[1], &letter, 1), 1);
    ASSERT_EQ(read(answers_[0], &letter, 1), 1);
  }
  /// The signal that ended it.
  int end() const {
    siginfo_t how{};
    waitid(P_PID, static_cast<id_t>(process_), &how, WEXITED | WNOWAIT);
    return how.si_status;
  }

 private:
  pid_t process_ = -1;
  int orders_[2] = {-1, -1}, answers_[2] = {-1, -1};
};

constexpr std::size_t kBytes = 64u << 20;
constexpr double kGib = 0.1;  ///< more than it takes at once, and less than twice

class TakenMemory : public testing::TestWithParam<int> {};

TEST_P(TakenMemory, CountsFromTheStartAndEndsWhoTakesMore) {
  Eater eater(kBytes, GetParam());
  eater.eat();
  MemoryWatch watch(eater.process(), kGib);
  watch.look(0, 0);
  watch.begin();
  eater.eat();
  watch.look(0, 0);
  EXPECT_EQ(watch.excess(), "");
  eater.eat();
  watch.look(0, 0);
  EXPECT_NE(watch.excess(), "");
  EXPECT_EQ(eater.end(), SIGKILL);
}

INSTANTIATE_TEST_SUITE_P(OfBothKinds, TakenMemory, testing::Values(MAP_PRIVATE, MAP_SHARED));

TEST(OwnMemory, IsNotWhatIsReservedAlone) {
  const double before = own_memory(getpid(), 0);
  constexpr std::size_t kReserved = std::size_t{1} << 40;
  void* reserved = mmap(nullptr, kReserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(reserved, MAP_FAILED);
  EXPECT_LT(own_memory(getpid(), 0) - before, 0x1p28);
  munmap(reserved, kReserved);
}

TEST(OwnMemory, InTheSharedFileCountsWhereTheWorkerWroteIt) {
  Eater eater(1, MAP_PRIVATE);
  MemoryWatch watch(eater.process(), kGib);
  watch.look(0, 0);
  watch.begin();
  watch.look(0x1p40, 0);  // the harness wrote it
  EXPECT_EQ(watch.excess(), "");
  watch.look(0x1p40, 0x1p30);
  EXPECT_NE(watch.excess(), "");
}

TEST(DefaultMemory, IsLessThanWhatIsFree) {
  EXPECT_GT(default_worker_memory(), 0);
  EXPECT_LT(default_worker_memory(), this_machine().memory_gib * 0x1p30);
}

}  // namespace
}  // namespace attest
