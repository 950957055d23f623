// What stands beside every number: the library with its version, and the device it ran on.
#pragma once

#include <string>

namespace attest {

struct Identity {
  std::string name, library, device;
};

}  // namespace attest
