#include "harness/base/raw_clock.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <random>

namespace attest {

long system_call(long number, long first, long second, long third, long fourth) {
#if defined(__x86_64__)
  long result = number;
  register long r10 __asm__("r10") = fourth;
  __asm__ volatile("syscall" : "+a"(result) : "D"(first), "S"(second), "d"(third), "r"(r10) : "rcx", "r11", "memory");
  return result;
#elif defined(__aarch64__)
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = first;
  register long x1 __asm__("x1") = second;
  register long x2 __asm__("x2") = third;
  register long x3 __asm__("x3") = fourth;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
  return x0;
#else
  return syscall(number, first, second, third, fourth);
#endif
}

double seconds_of_clock(clockid_t clock) {
  timespec now{};
  if (system_call(SYS_clock_gettime, clock, reinterpret_cast<long>(&now)) != 0) return -1;
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// The kernel's own coding, which clock_getcpuclockid() and pthread_getcpuclockid() give, too: 2 is the clock of the
// scheduler, 4 a thread instead of a process.
clockid_t process_clock(int process) { return static_cast<clockid_t>((~static_cast<unsigned>(process) << 3) | 2u); }
clockid_t thread_clock(int thread) { return static_cast<clockid_t>((~static_cast<unsigned>(thread) << 3) | 6u); }

double steady_seconds() { return seconds_of_clock(CLOCK_MONOTONIC); }

std::uint64_t random_bits() {
  std::uint64_t bits = 0;
  const long got = system_call(SYS_getrandom, reinterpret_cast<long>(&bits), sizeof bits, 0);
  if (got == static_cast<long>(sizeof bits)) return bits;
  std::random_device device;  // a kernel before getrandom
  return (std::uint64_t{device()} << 32) | device();
}

}  // namespace attest
