// The layer of the sandbox for files and other processes: Landlock, by its three system calls, which the C library
// lacks. Numbers that older headers of the kernel don't have are those of its documentation.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <vector>

#include "harness/backends/isolation/sandbox.h"

namespace attest {
namespace {

constexpr long kCreateRuleset = 444, kAddRule = 445, kRestrictSelf = 446;
constexpr unsigned kTellVersion = 1, kPathBeneath = 1;

enum Access : std::uint64_t {
  execute = 1u << 0,
  write_file = 1u << 1,
  read_file = 1u << 2,
  read_folder = 1u << 3,
  first_version = (1u << 13) - 1,
  refer = 1u << 13,     // from version 2
  truncate = 1u << 14,  // 3
  of_device = 1u << 15  // 5
};
constexpr std::uint64_t kOfFiles = execute | write_file | read_file | truncate | of_device;
constexpr std::uint64_t kRead = execute | read_file | read_folder, kUse = read_file | write_file | of_device;

struct Ruleset {
  std::uint64_t files, network, scoped;
};

struct __attribute__((packed)) PathRule {
  std::uint64_t allowed;
  std::int32_t parent;
};

/// What a version can forbid; all of it is.
Ruleset handled_by(long version) {
  Ruleset all{first_version, 0, 0};
  if (version >= 2) all.files |= refer;
  if (version >= 3) all.files |= truncate;
  if (version >= 4) all.network = 3;  // bind and connect, of TCP
  if (version >= 5) all.files |= of_device;
  if (version >= 6) all.scoped = 3;  // abstract sockets of others, and signals to them
  return all;
}

std::size_t size_of(long version) { return version >= 6 ? 24 : version >= 4 ? 16 : 8; }

/// A path that isn't there needs no rule.
bool allow(int rules, const std::filesystem::path& path, std::uint64_t access) {
  const int at = open(path.c_str(), O_PATH | O_CLOEXEC);
  if (at < 0) return errno == ENOENT || errno == ENOTDIR || errno == EACCES;
  struct stat about {};
  if (fstat(at, &about) == 0 && !S_ISDIR(about.st_mode)) access &= kOfFiles;
  const PathRule rule{access, at};
  const bool allowed = syscall(kAddRule, rules, kPathBeneath, &rule, 0) == 0;
  close(at);
  return allowed;
}

/// The largest parts of a folder that everybody may read. What root runs could read the rest: hashes of passwords,
/// keys.
std::vector<std::filesystem::path> public_parts(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> parts;
  bool whole = true;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    struct stat about {};
    if (lstat(entry.path().c_str(), &about) != 0 || S_ISLNK(about.st_mode)) continue;  // links lead where rules allow
    const mode_t needed = S_ISDIR(about.st_mode) ? S_IROTH | S_IXOTH : S_IROTH;
    if ((about.st_mode & needed) != needed) {
      whole = false;
      continue;
    }
    if (!S_ISDIR(about.st_mode)) {
      parts.push_back(entry.path());
      continue;
    }
    std::vector<std::filesystem::path> inner = public_parts(entry.path());
    whole = whole && inner.size() == 1 && inner.front() == entry.path();
    parts.insert(parts.end(), inner.begin(), inner.end());
  }
  return whole && !error ? std::vector{folder} : parts;
}

}  // namespace

std::string confine_files(const SandboxRequest& request) {
  const long version = syscall(kCreateRuleset, nullptr, 0, kTellVersion);
  if (version < 1) return "the system has no Landlock";
  const Ruleset all = handled_by(version);
  const int rules = static_cast<int>(syscall(kCreateRuleset, &all, size_of(version), 0));
  if (rules < 0) return std::strerror(errno);
  bool complete = true;
  for (const std::filesystem::path& path : public_parts("/etc"))
    complete = allow(rules, path, kRead & all.files) && complete;
  for (const char* path : {"/usr", "/lib", "/lib64", "/bin", "/sbin", "/opt", "/sys", "/proc/self", "/proc/cpuinfo",
                           "/proc/meminfo", "/proc/stat", "/proc/sys", "/proc/filesystems", "/proc/version",
                           "/proc/vmstat", "/dev/random", "/dev/urandom"}) {
    complete = allow(rules, path, kRead & all.files) && complete;
  }
  for (const char* path : {"/dev/null", "/dev/zero", "/dev/full"}) {
    complete = allow(rules, path, kUse & all.files) && complete;
  }
  for (const std::filesystem::path& path : request.readable) {
    complete = allow(rules, path, kRead & all.files) && complete;
  }
  if (!request.scratch.empty())
    complete = allow(rules, request.scratch, all.files & ~std::uint64_t{of_device}) && complete;
  const bool in_force = complete && syscall(kRestrictSelf, rules, 0) == 0;
  std::string reason = in_force ? "" : std::strerror(errno);
  close(rules);
  return reason;
}

}  // namespace attest
