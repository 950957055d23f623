// The backends of this build, in alphabetical order. The list is written by CMake from the folders it found.
#pragma once

#include <span>

#include "backends/backend.h"

namespace attest {

std::span<const BackendEntry> registered_backends();

}  // namespace attest
