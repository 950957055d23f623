// Where compiled OpenCL kernels are kept.
#pragma once

#include <filesystem>
#include <string>

namespace attest::support {

struct CacheFolder {
  std::filesystem::path path;  ///< can be written to; empty when no folder can
  std::string trouble;         ///< why the user's own cache can't be written to; empty when it can
};

/// The folder `name` in $XDG_CACHE_HOME, else in ~/.cache, made where it is missing; where that can't be written to, in
/// a folder of this user's alone among the temporary files.
CacheFolder cache_folder(const std::string& name);

/// Tells pocl to keep its kernels there, unless $POCL_CACHE_DIR says where. It has no device for who can't write to its
/// cache. Returns what is wrong with the folders; "" when one of them will do.
std::string provide_driver_cache();

}  // namespace attest::support
