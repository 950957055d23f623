#include "backends/support/opencl/cache_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace attest::support {
namespace fs = std::filesystem;
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

/// Makes the folder where it is missing. Returns why it can't be written to; "" when it can.
std::string make_writable(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return folder.string() + ": " + error.message();
  if (access(folder.c_str(), W_OK | X_OK) != 0) return folder.string() + ": " + std::strerror(errno);
  return "";
}

/// Nobody else may put kernels there that this user then runs.
bool is_mine_alone(const fs::path& folder) {
  struct stat info {};
  return lstat(folder.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == geteuid() &&
         (info.st_mode & 077) == 0;
}

}  // namespace

CacheFolder cache_folder(const std::string& name) {
  CacheFolder result;
  const std::string cache = variable("XDG_CACHE_HOME"), home = variable("HOME");
  if (!cache.empty() || !home.empty()) {
    result.path = (cache.empty() ? fs::path(home) / ".cache" : fs::path(cache)) / name;
    result.trouble = make_writable(result.path);
    if (result.trouble.empty()) return result;
  } else {
    result.trouble = "HOME is not set";
  }
  std::error_code error;
  const fs::path temporary = fs::temp_directory_path(error);
  const fs::path mine = temporary / ("attest-cache-" + std::to_string(geteuid()));
  std::string other;
  if (error)
    other = "no folder for temporary files: " + error.message();
  else if (mkdir(mine.c_str(), 0700) != 0 && errno != EEXIST)
    other = mine.string() + ": " + std::strerror(errno);
  else if (!is_mine_alone(mine))
    other = mine.string() + " is not this user's alone";
  else
    other = make_writable(mine / name);
  result.path = other.empty() ? mine / name : fs::path();
  if (!other.empty()) result.trouble += "; " + other;
  return result;
}

std::string provide_driver_cache() {
  if (const std::string chosen = variable("POCL_CACHE_DIR"); !chosen.empty()) return make_writable(chosen);
  const CacheFolder folder = cache_folder("pocl");
  if (folder.path.empty()) return folder.trouble;
  if (!folder.trouble.empty()) setenv("POCL_CACHE_DIR", folder.path.c_str(), 1);
  return "";
}

}  // namespace attest::support
