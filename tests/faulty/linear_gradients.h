// Deliberately wrong backends: `example`, with gradients of linear attention that are those of a part of the call.
#pragma once

#include <span>
#include <string_view>

#include "backends/backend.h"

namespace attest::faulty {

std::span<const BackendEntry> linear_gradient_backends();

std::string_view linear_gradient_description(std::string_view name);

}  // namespace attest::faulty
