// Threads of libraries' pools that wait for work: where others need the processors, they shall rest and not spin.
#pragma once

#include <cstdlib>

namespace attest {

/// Sets the variables by which OpenMP's and OpenBLAS's pools know this, where they aren't set. They are read when the
/// libraries are loaded: set them for a process to come.
inline void have_waiting_threads_rest() {
  if (!std::getenv("GOMP_SPINCOUNT")) setenv("OMP_WAIT_POLICY", "passive", 0);
  // OpenBLAS would spin for 2^28 cycles, from when it is loaded on: a tenth of a second. 2^20 are between two calls.
  setenv("OPENBLAS_THREAD_TIMEOUT", "20", 0);
}

}  // namespace attest
