// Deliberately wrong backends: `example`, with the lengths and pages of another run, or with new keys that go astray.
#pragma once

#include <span>
#include <string_view>

#include "backends/backend.h"

namespace attest::faulty {

std::span<const BackendEntry> launch_backends();

std::string_view launch_description(std::string_view name);

}  // namespace attest::faulty
