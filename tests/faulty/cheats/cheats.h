// Backends that cheat in a benchmark: right results, and a speed that no run() earned.
#pragma once

#include <span>
#include <string_view>

#include "backends/backend.h"
#include "harness/speed/trust/no_speed.h"

namespace attest::faulty {

/// One entry for each cheat. All compute with the correct loops of tests/faulty/faulty.cpp, in one thread, when they do
/// compute.
std::span<const BackendEntry> cheating_backends();

/// Why a benchmark must give this cheat no speed.
NoSpeed reason_for_cheat(std::string_view name);

}  // namespace attest::faulty
