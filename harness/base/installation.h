// Where the installation lies that a program of others was linked with.
#pragma once

#include <filesystem>

namespace attest {

/// Its folder share/attest, told by harness/installed_data.cpp before main; empty in attest's own programs,
/// which look beside themselves.
inline std::filesystem::path& installed_data() {
  static std::filesystem::path folder;
  return folder;
}

}  // namespace attest
