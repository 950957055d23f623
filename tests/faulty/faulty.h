// Deliberately wrong backends: one correct kernel in plain loops with one mistake switched on.
#pragma once

#include <span>

#include "backends/backend.h"

namespace attest::faulty {

/// First the kernel without a mistake, then one row for each mistake.
std::span<const BackendEntry> faulty_backends();

/// What the mistake is, in a few words.
std::string_view description(std::string_view name);

}  // namespace attest::faulty
