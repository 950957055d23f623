// Time as the kernel and the processor count it, past the C library.
//
// A program whose backends define clock_gettime, or a plug-in that patches the table of a library's functions, gives
// everybody in the process its own time. What is timed asks the kernel itself.
#pragma once

#include <time.h>

#include <cstddef>
#include <cstdint>

namespace attest {

/// Of the kernel, by the processor's own instruction where the processor is known. Returns what the kernel returns:
/// a negative error number where it refuses.
long system_call(long number, long first = 0, long second = 0, long third = 0, long fourth = 0);

/// Seconds on one of the system's clocks; negative where there is no such clock.
double seconds_of_clock(clockid_t clock);
/// Of every thread of a process.
clockid_t process_clock(int process);
/// Of a thread of this process.
clockid_t thread_clock(int thread);

/// Seconds on CLOCK_MONOTONIC.
double steady_seconds();

/// 64 bits that nobody can know before.
std::uint64_t random_bits();

}  // namespace attest
