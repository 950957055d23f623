// What this program runs on: stands beside every number it prints.
#pragma once

#include <filesystem>
#include <string>

namespace attest {

struct Machine {
  std::string cpu;  ///< model name
  int cores = 1;
  double memory_gib = 0;
  std::string system;  ///< kernel and architecture
  std::string build;   ///< compiler, flags for the target, build type
};

Machine this_machine();
/// Commit of the sources, with "+" when they differ from it; "unknown" outside a checkout.
std::string build_commit();
std::filesystem::path program_path();
/// What can be allocated now without swapping, cgroup limits included.
double available_memory_bytes();

}  // namespace attest
