// Deliberately wrong backends: `example`, right for any case by itself, that keeps something beyond a plan under too
// short a name, or counts on the order in which plans take their steps.
#pragma once

#include <span>

#include "backends/backend.h"

namespace attest::faulty {

/// Each is right in a plan that is walked once in a fresh process.
std::span<const BackendEntry> keeping_backends();

}  // namespace attest::faulty
