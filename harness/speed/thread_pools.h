// Pools of threads that take their size from the environment and not from an argument.
#pragma once

namespace attest {

/// Tells the pools of OpenCL runtimes for CPUs (PoCL, Intel's) how many threads a backend is given, unless the
/// environment says so already. They look once, when the first device is asked for: call it before backends are made.
/// OpenMP's and OpenBLAS's pools have their size from the backends that use them.
void limit_thread_pools(int threads);

}  // namespace attest
