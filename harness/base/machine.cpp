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

constexpr double kNoLimit = 1e300;

double number_in(const std::filesystem::path& path) {
  double value = kNoLimit;
  std::ifstream file(path);
  return file >> value ? value : kNoLimit;  // "max" is no number
}

/// Of one group: its limit minus what it uses and can't give back. kNoLimit where it has none.
double room_in(const std::filesystem::path& folder, const char* limit, const char* used, const std::string& cache) {
  const double most = number_in(folder / limit), taken = number_in(folder / used);
  if (most >= 0x1p62 || taken == kNoLimit) return kNoLimit;
  double reclaimable = 0, value = 0;
  std::ifstream statistics(folder / "memory.stat");
  for (std::string name; statistics >> name >> value;) {
    if (name == cache) reclaimable = value;
  }
  return most - taken + reclaimable;
}

/// The least room of this process's memory cgroup and those around it, of either version; a container shows its own as
/// the outermost.
double cgroup_room() {
  double room = kNoLimit;
  std::ifstream groups("/proc/self/cgroup");  // "0::/a/b", or "4:memory:/a/b"
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool unified = controllers == ",,";
    if (!unified && controllers.find(",memory,") == std::string::npos) continue;
    const std::filesystem::path root = unified ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    std::filesystem::path below = std::filesystem::path(line.substr(second + 1)).relative_path();
    for (bool more = true; more; below = below.parent_path()) {
      more = !below.empty();
      room = std::min(room, unified ? room_in(root / below, "memory.max", "memory.current", "inactive_file")
                                    : room_in(root / below, "memory.limit_in_bytes", "memory.usage_in_bytes",
                                              "total_inactive_file"));
    }
  }
  return room;
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
  return std::min(available > 0 ? available : kNoLimit, std::max(0.0, cgroup_room()));
}

}  // namespace attest
