// Deliberately wrong backends: `example`, with states of linear attention that other tokens made.
#pragma once

#include <span>
#include <string_view>

#include "backends/backend.h"

namespace attest::faulty {

std::span<const BackendEntry> linear_state_backends();

std::string_view linear_state_description(std::string_view name);

}  // namespace attest::faulty
