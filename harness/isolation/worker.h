// The process in which one backend runs when it is isolated.
#pragma once

#include <span>
#include <string>

#include "backends/backend.h"

namespace attest {

/// What a worker is told on its command line. Its socket and shared file are descriptors 3 and 4.
struct WorkerOptions {
  std::string backend, device;
  std::string plugin;  ///< path of the library that has the backend; an empty name then asks which it has
  int threads = 1;
  double memory_gib = 0;  ///< of address space beyond what it starts with; 0: no limit
};
inline constexpr int kWorkerSocket = 3, kWorkerFile = 4;
/// Exit code of a worker that touched memory beside its tensors; its last words say which.
inline constexpr int kMemoryFault = 99;

/// Serves requests until the harness closes the socket. Returns the process's exit code.
int run_worker(const WorkerOptions& options, std::span<const BackendEntry> registry);

}  // namespace attest
