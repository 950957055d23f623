// What the harness gives a worker that runs code of strangers: a folder of its own and an environment without secrets.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace attest {

/// A new folder among the system's temporary ones; removed with all that is in it. Throws std::filesystem_error.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// Those of "NAME=value" that say where libraries and modules lie, how texts are encoded, and how many threads and
/// which devices libraries use. Homes, temporary files and caches are led into `scratch`.
std::vector<std::string> environment_of_stranger(const std::vector<std::string>& environment,
                                                 const std::filesystem::path& scratch);

/// This process's memory can't be read by others of its user, from here on, and it leaves no core file.
void hide_memory();

}  // namespace attest
