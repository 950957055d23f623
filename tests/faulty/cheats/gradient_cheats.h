// Backends that cheat in a benchmark of gradients: what they kept of the first run spares them work in later ones.
#pragma once

#include <span>
#include <string_view>

#include "backends/backend.h"
#include "harness/speed/trust/no_speed.h"

namespace attest::faulty {

/// First one that does not cheat, then one for each cheat. For dense f32 calls without options, pass=backward.
std::span<const BackendEntry> gradient_cheats();

/// Why a benchmark must give this one no speed.
NoSpeed reason_for_gradient_cheat(std::string_view name);

}  // namespace attest::faulty
