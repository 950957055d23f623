// Seconds of processor time, of the whole process and of the calling thread.
#pragma once

#include "harness/base/raw_clock.h"

namespace attest {

/// Of every thread that this process has or had.
inline double process_cpu_seconds() { return seconds_of_clock(CLOCK_PROCESS_CPUTIME_ID); }

inline double thread_cpu_seconds() { return seconds_of_clock(CLOCK_THREAD_CPUTIME_ID); }

/// Of all threads but the calling one: what pools do while the harness computes or waits.
inline double other_threads_cpu_seconds() { return process_cpu_seconds() - thread_cpu_seconds(); }

}  // namespace attest
