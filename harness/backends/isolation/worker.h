// The process in which one backend runs when it is isolated.
#pragma once

#include <span>
#include <string>

#include "backends/backend.h"

namespace attest {

/// What a worker is told on its command line. Its socket and shared files are descriptors 3 to 5.
struct WorkerOptions {
  std::string backend, device;
  std::string plugin;  ///< path of the library that has the backend; an empty name then asks which it has
  int threads = 1;
  std::string sandbox;  ///< layers, comma separated; empty: the worker keeps the rights of the user
  std::string scratch;  ///< the folder that it may write to there
};
inline constexpr int kWorkerSocket = 3, kWorkerFile = 4, kWorkerInputs = 5;
/// Exit code of a worker that touched memory beside its tensors; its exit message says which.
inline constexpr int kMemoryFault = 99;

/// Serves requests until the harness closes the socket. Returns the process's exit code.
int run_worker(const WorkerOptions& options, std::span<const BackendEntry> registry);

}  // namespace attest
