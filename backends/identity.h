// What stands beside every number: the library with its version, and the device it ran on.
#pragma once

#include <string>

namespace attest {

struct Identity {
  std::string name, library, device;
  std::string plugin{};  ///< the shared library that it comes from, as the user named it; the host's to fill in
};

}  // namespace attest
