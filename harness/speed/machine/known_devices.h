// Which devices besides the processor this machine has, by what its drivers say: a backend may state any.
#pragma once

#include <string>
#include <vector>

#include "backends/identity.h"

namespace attest {

/// Names of accelerators, from the kernel's drivers and from OpenCL's where it is installed. Looked up once.
const std::vector<std::string>& accelerators();

/// What a backend says that it computes on.
enum class StatedDevice {
  host,         ///< the processor that this program runs on
  accelerator,  ///< one that this machine has
  unknown,      ///< nobody but the backend knows of it: it is judged as the processor
};
StatedDevice stated_device(const Identity& identity, const std::vector<std::string>& names = accelerators());

}  // namespace attest
