// Benchmarks of a backend in a process of its own: the end in the worker.
//
// The whole of a sample happens there, its clock, its checks and its watch on the machine included: no message lies
// within a time that is measured.
#pragma once

#include <memory>

#include "harness/backends/isolation/worker.h"

namespace attest {

/// For the worker's backend, with as many threads as that was given.
std::unique_ptr<WorkerService> make_timing_service(Backend& backend, int threads);

}  // namespace attest
