#include "harness/backends/isolation/scratch_space.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "harness/backends/isolation/sandbox.h"

namespace attest {
namespace {

constexpr int kMostDepth = 64;
constexpr std::uintmax_t kBytesOfBlock = 512;  ///< as stat counts them, whatever the file system has

/// An open folder.
class Folder {
 public:
  Folder(int parent, const char* name) {
    const int file = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (file >= 0 && !(stream_ = fdopendir(file))) close(file);
  }
  ~Folder() {
    if (stream_) closedir(stream_);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  explicit operator bool() const { return stream_ != nullptr; }
  int file() const { return dirfd(stream_); }
  void rewind() { rewinddir(stream_); }
  /// The next name but . and ..; null at the end.
  const char* next() {
    for (const dirent* entry = nullptr; (entry = readdir(stream_));) {
      if (std::strcmp(entry->d_name, ".") != 0 && std::strcmp(entry->d_name, "..") != 0) return entry->d_name;
    }
    return nullptr;
  }

 private:
  DIR* stream_ = nullptr;
};

bool is_folder(int parent, const char* name) {
  struct stat about {};
  return fstatat(parent, name, &about, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(about.st_mode);
}

struct Held {
  std::uintmax_t bytes = 0, files = 0;
  bool exceeds() const { return bytes > kMostScratchBytes || files > kMostScratchFiles; }
};

/// Where the folder is: memory that is shared by files is counted elsewhere.
void count_nameless(pid_t process, const char* folder, Held& held) {
  struct stat there {};
  if (stat(folder, &there) != 0) return;
  Folder files(AT_FDCWD, fmt::format("/proc/{}/fd", process).c_str());
  if (!files) return;
  while (const char* entry = files.next()) {
    struct stat about {};
    if (fstatat(files.file(), entry, &about, 0) != 0 || !S_ISREG(about.st_mode)) continue;
    if (about.st_nlink == 0 && about.st_dev == there.st_dev)
      held.bytes += static_cast<std::uintmax_t>(about.st_blocks) * kBytesOfBlock;
  }
}

/// False where there is too much, or what nobody can look into.
bool count_in(int parent, const char* name, int depth, Held& held) {
  Folder folder(parent, name);
  if (!folder) return errno == ENOENT;
  while (const char* entry = folder.next()) {
    struct stat about {};
    ++held.files;
    if (fstatat(folder.file(), entry, &about, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (S_ISREG(about.st_mode)) held.bytes += static_cast<std::uintmax_t>(about.st_blocks) * kBytesOfBlock;
    if (held.exceeds()) return false;
    if (S_ISDIR(about.st_mode) && (depth == kMostDepth || !count_in(folder.file(), entry, depth + 1, held)))
      return false;
  }
  return true;
}

bool written(const char* file, const std::string& text) {
  std::ofstream stream(file);
  return static_cast<bool>(stream << text << std::flush);
}

/// A namespace for mounts, with one of users around it where this isn't root's process.
std::string enter_mount_namespace() {
  const uid_t user = geteuid();
  const gid_t group = getegid();
  if (unshare(CLONE_NEWNS) != 0) {
    if (errno != EPERM) return std::strerror(errno);
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return std::strerror(errno);
    written("/proc/self/setgroups", "deny");
    if (!written("/proc/self/uid_map", fmt::format("{} {} 1", user, user)) ||
        !written("/proc/self/gid_map", fmt::format("{} {} 1", group, group)))
      return "the user can't be named in a namespace";
  }
  return mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 ? "" : std::strerror(errno);
}

}  // namespace

std::string confine_scratch(const SandboxRequest& request) {
  if (request.scratch.empty()) return "there is no scratch folder";
  if (request.keeps_scratch) return "what is written there is kept";
  if (std::string reason = enter_mount_namespace(); !reason.empty()) return reason;
  const std::string options = fmt::format("size={},nr_inodes={},mode=0700", kMostScratchBytes, kMostScratchFiles);
  return mount("scratch", request.scratch.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, options.c_str()) == 0
             ? ""
             : std::strerror(errno);
}

std::string scratch_excess_text() {
  return fmt::format("more than {} MiB or {} files in its scratch folder", kMostScratchBytes >> 20, kMostScratchFiles);
}

bool has_scratch_excess(const std::filesystem::path& folder, pid_t process) {
  Held held;
  if (process > 0) count_nameless(process, folder.c_str(), held);
  return held.exceeds() || !count_in(AT_FDCWD, folder.c_str(), 0, held);
}

void remove_strangers_folder(const std::filesystem::path& folder) {
  Folder top(AT_FDCWD, folder.c_str());
  if (!top) return;
  // Folders in folders are moved up: however deep they are, two are open at a time, and no path grows long.
  std::uint64_t moved = 0;
  for (bool more = true; more;) {
    more = false;
    top.rewind();
    while (const char* entry = top.next()) {
      if (unlinkat(top.file(), entry, 0) == 0 || !is_folder(top.file(), entry)) continue;
      fchmodat(top.file(), entry, S_IRWXU, 0);
      if (Folder inner(top.file(), entry); inner) {
        while (const char* name = inner.next()) {
          if (unlinkat(inner.file(), name, 0) == 0 || !is_folder(inner.file(), name)) continue;
          fchmodat(inner.file(), name, S_IRWXU, 0);
          const std::string place = fmt::format("moved.{}", moved++);
          more = renameat(inner.file(), name, top.file(), place.c_str()) == 0 || more;
        }
      }
      unlinkat(top.file(), entry, AT_REMOVEDIR);
    }
  }
  rmdir(folder.c_str());
}

}  // namespace attest
