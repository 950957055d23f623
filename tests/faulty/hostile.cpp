// attest with backends that attack the harness: crashes, hangs, exits, writes where they must not. For tests of
// isolation. Behind them stand those that keep state, for the same tests through processes.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cfenv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include "harness/cli/cli.h"
#include "harness/mpi/mpi_ranks.h"
#include "tests/faulty/around.h"
#include "tests/faulty/faulty.h"
#include "tests/faulty/keeping.h"
#include "tests/faulty/stateful.h"
#include "tests/mpi/spanning.h"

namespace attest {
namespace {

// clang-format off
#define ATTEST_ATTACKS(attack) \
  attack(none) attack(segfault) attack(aborts) attack(hangs) attack(exits_with_0) attack(throws_an_int) \
  attack(eats_memory) attack(rounds_up) attack(flushes_to_zero) attack(right_the_first_time) attack(reads_beyond_k) \
  attack(reads_before_v) attack(writes_beyond_o) attack(writes_before_o) attack(changes_its_input) \
  attack(writes_afterwards) attack(crashes_in_drop) attack(crashes_in_prepare) attack(crashes_in_refuse) \
  attack(crashes_later) attack(minds_its_parameters) attack(cuts_shared_memory) attack(seals_shared_memory) \
  attack(closes_descriptors) attack(replaces_descriptors) attack(writes_to_connection) attack(answers_by_itself) \
  attack(leaves_a_child) attack(steals_requests) attack(fills_shared_memory) attack(leaks_memory) \
  attack(leaks_shared_memory) attack(says_something)
// clang-format on
#define ATTEST_ATTACK(name) name,
enum class Attack { ATTEST_ATTACKS(ATTEST_ATTACK) };
#undef ATTEST_ATTACK
#define ATTEST_ATTACK(name) {#name},
constexpr struct { std::string_view name; } kAttacks[] = {ATTEST_ATTACKS(ATTEST_ATTACK)};
#undef ATTEST_ATTACK

/// The correct loops, with an attack before or after them.
class HostilePlan : public faulty::PlanAround {
 public:
  HostilePlan(std::unique_ptr<Plan> inner, Attack attack, int& calls)
      : PlanAround(std::move(inner)), attack_(attack), calls_(calls) {}

  /// Between two cases at the earliest.
  ~HostilePlan() override {
    if (attack_ == Attack::crashes_in_drop) raise(SIGSEGV);
    if (attack_ != Attack::crashes_later) return;
    std::thread([] {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      raise(SIGSEGV);
    }).detach();
  }

  void upload(const Inputs& inputs) override {
    inputs_ = inputs;
    inner_->upload(inputs);
  }

  void run() override {
    inner_->run();
    ++calls_;
    switch (attack_) {
      case Attack::segfault: raise(SIGSEGV); break;
      case Attack::aborts: std::abort();
      case Attack::hangs:
        for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
      case Attack::exits_with_0: _exit(0);
      case Attack::throws_an_int: throw 42;
      case Attack::eats_memory:
        for (static std::vector<std::unique_ptr<char[]>> all;;) all.emplace_back(new char[64 << 20]);
      case Attack::rounds_up: std::fesetround(FE_UPWARD); break;
      case Attack::flushes_to_zero:
#if defined(__SSE2__)
        _mm_setcsr(_mm_getcsr() | 0x8040u);
#endif
        break;
      case Attack::cuts_shared_memory:
        for (int n = 3; n < 64; ++n) (void)!ftruncate(n, 0);
        break;
      case Attack::seals_shared_memory:
        for (int n = 3; n < 64; ++n) fcntl(n, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_FUTURE_WRITE);
        break;
      case Attack::closes_descriptors:
        for (int n = 0; n < 1024; ++n) close(n);
        break;
      case Attack::replaces_descriptors: {
        const int nothing = open("/dev/null", O_RDWR);
        for (int n = 3; n < 16; ++n) dup2(nothing, n);
        break;
      }
      case Attack::writes_to_connection: write_everywhere(std::string(100, 'x')); break;
      case Attack::answers_by_itself: write_everywhere(std::string("\2\0\0\0\0\0\0\0{}", 10)); break;
      case Attack::leaves_a_child:
        if (fork() == 0) sleep(60);
        _exit(0);
      case Attack::steals_requests: {
        std::thread([] {
          char any[256];
          for (int n = 3;; n = 3) (void)!read(n, any, sizeof any);
        }).detach();
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        break;
      }
      case Attack::fills_shared_memory:
        for (int n = 3; n < 16; ++n) (void)!fallocate(n, 0, 0, off_t{4} << 30);
        break;
      case Attack::says_something: std::fputs("something\n", stderr); break;
      case Attack::leaks_memory: leak(MAP_PRIVATE); break;
      case Attack::leaks_shared_memory: leak(MAP_SHARED); break;
      case Attack::reads_beyond_k: touch(inputs_.k(), inputs_.k().shape[1] * inputs_.k().strides[1]); break;
      case Attack::reads_before_v: touch(inputs_.v(), -1024); break;
      case Attack::changes_its_input: *static_cast<float*>(const_cast<void*>(inputs_.q().data)) = 0; break;
      default: break;
    }
  }

  void download(const Outputs& outputs) override {
    inner_->download(outputs);
    auto* out = static_cast<float*>(outputs.out().data);
    const std::int64_t elements = outputs.out().shape[0] * outputs.out().strides[0];
    if (attack_ == Attack::writes_beyond_o) out[elements] = 1;
    if (attack_ == Attack::writes_before_o) out[-1] = 1;
    if (attack_ == Attack::right_the_first_time && calls_ > 1) out[0] += 1;
    if (attack_ == Attack::writes_afterwards) {
      static std::atomic<bool> begun{false};
      std::thread([out] {
        for (float x = 0;; x += 1) {
          *static_cast<volatile float*>(out) = x;
          begun = true;
        }
      }).detach();
      while (!begun) std::this_thread::yield();
    }
  }

 private:
  static void write_everywhere(const std::string& text) {
    for (int n = 3; n < 16; ++n) (void)!send(n, text.data(), text.size(), MSG_NOSIGNAL);
  }
  static void leak(int sharing) {
    constexpr std::size_t kBytes = 200u << 20;
    void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | sharing, -1, 0);
    if (memory != MAP_FAILED) std::memset(memory, 1, kBytes);
  }
  static void touch(const ConstTensor& t, std::int64_t element) {
    volatile float sink = static_cast<const float*>(t.data)[element];
    (void)sink;
  }

  Attack attack_;
  int& calls_;
  Inputs inputs_{};
};

class HostileBackend : public faulty::BackendAround {
 public:
  HostileBackend(Attack attack, const Context& context)
      : BackendAround({std::string(kAttacks[static_cast<std::size_t>(attack)].name), "an attack on the harness", "CPU"},
                      faulty::faulty_backends().front().make(context)),
        attack_(attack) {}

  std::optional<Refusal> refuse(const Call& problem) const override {
    if (attack_ == Attack::crashes_in_refuse) raise(SIGILL);
    return inner_->refuse(problem);
  }
  Tuning tuning() const override {
    if (attack_ != Attack::minds_its_parameters) return {};
    return {1, {{"tile", tile_, 1, {1, 2, 3, 4}}}};
  }
  void tune(const std::vector<std::int64_t>& values) override {
    tile_ = values.at(0);
    if (tile_ == 4) raise(SIGSEGV);
  }
  std::unique_ptr<Plan> prepare(const Call& problem) override {
    if (tile_ == 2) _exit(0);
    while (tile_ == 3) std::this_thread::sleep_for(std::chrono::seconds(1));
    if (attack_ == Attack::crashes_in_prepare) raise(SIGFPE);
    return std::make_unique<HostilePlan>(inner_->prepare(problem), attack_, calls_);
  }

 private:
  Attack attack_;
  int calls_ = 0;
  std::int64_t tile_ = 1;
};

}  // namespace
}  // namespace attest

int main(int argc, char** argv) {
  auto backends = attest::faulty::entries_of<attest::HostileBackend, attest::Attack>(attest::kAttacks);
  const auto stateful = attest::faulty::stateful_backends();
  backends.insert(backends.end(), stateful.begin(), stateful.end());
  const auto keeping = attest::faulty::keeping_backends();
  backends.insert(backends.end(), keeping.begin(), keeping.end());
  backends.push_back(attest::faulty::oversubscribed_backend());
#ifdef ATTEST_HAS_MPI
  backends.push_back(attest::spanning_backend());
  return attest::run_command_line(argc, argv, backends, attest::make_mpi_ranks);
#else
  return attest::run_command_line(argc, argv, backends);
#endif
}
