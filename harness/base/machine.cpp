#include "harness/base/machine.h"

#include <sys/utsname.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <thread>

#include "attest_build.h"

namespace attest {
namespace {

/// The value after "key" in a file of "key : value" lines, or empty.
std::string proc_value(const char* path, const std::string& key) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    if (!line.starts_with(key)) continue;
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::size_t first = line.find_first_not_of(" \t", colon + 1);
    return first == std::string::npos ? "" : line.substr(first);
  }
  return "";
}

double kilobytes(const std::string& key) {
  double value = 0;
  std::istringstream(proc_value("/proc/meminfo", key)) >> value;
  return value;
}

/// Limit minus use of the memory cgroup, or a huge number where there is none.
double cgroup_room() {
  double limit = 0, used = 0;
  std::ifstream max_file("/sys/fs/cgroup/memory.max"), used_file("/sys/fs/cgroup/memory.current");
  if (max_file >> limit && used_file >> used) return limit - used;
  return 1e300;
}

}  // namespace

Machine this_machine() {
  Machine machine;
  machine.cpu = proc_value("/proc/cpuinfo", "model name");
  if (machine.cpu.empty()) machine.cpu = "unknown";
  machine.cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  machine.memory_gib = kilobytes("MemTotal") / 0x1p20;
  utsname names{};
  if (uname(&names) == 0) machine.system = std::string(names.sysname) + " " + names.release + " " + names.machine;
  machine.build = ATTEST_BUILD_DESCRIPTION;
  return machine;
}

std::string build_commit() { return ATTEST_BUILD_COMMIT; }

std::filesystem::path program_path() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error);
}

double available_memory_bytes() {
  const double available = kilobytes("MemAvailable") * 1024;
  return std::min(available > 0 ? available : 1e300, cgroup_room());
}

}  // namespace attest
