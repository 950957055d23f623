// What a worker gives up before it loads code of strangers, for itself and for all that it starts.
//
// Five layers, each by itself, as systems lack one or another:
//   landlock      reads and executes the system's folders and those of the library or interpreter, writes to one
//   scratch
//                 folder, sees of /proc itself alone, and reaches no process outside by signals, traces or memory
//   seccomp       no sockets, no processes, no tracing, no namespaces, no signals to others, no priorities of others
//   limits        of files, their sizes, threads and addresses; no core files
//   scratch       a file system of its own for the scratch folder, of 256 MiB (scratch_space.h)
//   capabilities  none is kept, nor got by a program that is executed
// A process in a sandbox gets no new rights by programs that change them (no_new_privs).
#pragma once

#include <cstddef>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "harness/backends/isolation/isolation_options.h"

namespace attest {

struct SandboxRequest {
  std::set<SandboxLayer> layers;
  std::filesystem::path scratch;                ///< becomes the working folder
  std::vector<std::filesystem::path> readable;  ///< folders and files besides the system's; those that don't exist
                                                ///< count for nothing
  bool keeps_scratch = false;                   ///< others read what it has written there
  bool processes = false;                       ///< it may start some, in the same sandbox
  bool executes = false;                        ///< it becomes another program next, which ends all other threads
};

struct SandboxLayerState {
  SandboxLayer layer;
  std::string missing;  ///< why it is; empty: in force
};

/// To be called while the process has one thread, unless it executes a program next. Layers that can't be had are left
/// out, and told.
std::vector<SandboxLayerState> enter_sandbox(const SandboxRequest& request);

/// "landlock, limits; missing: seccomp (attest was built without libseccomp)".
std::string sandbox_text(const std::vector<SandboxLayerState>& layers);

/// A sentence where a layer that was wanted is missing without which strangers aren't run; "" otherwise.
std::string vital_layer_missing(const std::vector<SandboxLayerState>& layers, const SandboxOptions& wanted);

/// Layers with commas between or behind them, as other processes are told them.
std::string layers_text(const std::set<SandboxLayer>& layers);
std::set<SandboxLayer> layers_from_text(const std::string& text);

/// That a process in a sandbox may have. The system sets root no limit: whoever waits for a worker looks.
inline constexpr std::size_t kMostThreads = 4096;

/// Whether the calling thread is the only one of its process.
bool has_one_thread();

/// Of each layer: confines this thread and what it starts. Empty, or why it can't.
std::string confine_files(const SandboxRequest& request);
std::string confine_scratch(const SandboxRequest& request);
std::string confine_system_calls(const SandboxRequest& request);
std::string confine_resources(const SandboxRequest& request);
std::string drop_capabilities();

}  // namespace attest
